-- Where a host leads that only a request names. The controller looks it up and judges the addresses: nginx itself would
-- go anywhere, and take the path of a socket for a host.

local upstreams = require("fairway.upstreams")

local lookup = {}

-- Milliseconds that it may take: a name has 5 s for its turn and 5 s for its answer.
local PATIENCE = 11000
-- Bytes of a host at most.
local LONGEST = 255

-- Host and port of an authority; nothing if it is none.
local function parts(authority, default)
  local host, port = authority:match("^(%[[%x:.]+%])(.*)$")
  if not host then
    host, port = authority:match("^([%w_.-]+)(.*)$")
  end
  if not host or #host > LONGEST then
    return nil
  elseif port == "" then
    return host, default
  end
  port = tonumber(port:match("^:(%d+)$"))
  if port and port > 0 and port < 65536 then
    return host, port
  end
end

local function ask(host, port, namespace)
  local sock = ngx.socket.tcp()
  sock:settimeout(PATIENCE)
  -- nginx runs in the private folder.
  local ok, err = sock:connect("unix:" .. ngx.config.prefix() .. "names.sock")
  if not ok then
    return nil, err
  end
  local line
  ok, err = sock:send(host .. " " .. port .. " " .. namespace .. "\n")
  if ok then
    line, err = sock:receive("*l")
  end
  sock:close()
  return line, err
end

-- The addresses behind an authority, as an upstream; nothing and the reason where there are none. The question is this
-- namespace's.
function lookup.find(authority, default, namespace)
  local host, port = parts(authority, default)
  if not host then
    return nil, "it is no host"
  end
  local line, err = ask(host, port, namespace)
  if not line or line:sub(1, 1) ~= "{" then
    return nil, err or line
  end
  return upstreams.compile(line)
end

return lookup
