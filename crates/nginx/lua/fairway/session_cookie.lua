-- The cookie of a session: what the client says, and what it is told.

local routes = require("fairway.routes")

local session_cookie = {}

-- The value of a session cookie; of several with the name the last counts, as in the original.
function session_cookie.read(name)
  local found
  for pair in (ngx.var.http_cookie or ""):gmatch("[^;]+") do
    local key, value = pair:match("^%s*(.-)=(.*)$")
    if key == name then
      found = value:match("^[^ \t]*")
    end
  end
  return found
end

-- Browsers that take `SameSite=None` for `Strict`.
local function takes_none(agent)
  local function says(text)
    return agent:find(text, 1, true)
  end
  local old_chrome = says("Chrome/4") or says("Chrome/5") or says("Chrome/6")
  local ios_12 = says("CPU iPhone OS 12") or says("iPad; CPU OS 12")
  local mojave = says("Macintosh") and says("Intel Mac OS X 10_14") and says("Safari") and not says("Chrome")
  return not (old_chrome or ios_12 or mojave)
end

-- Whether this client is told its session: where only some names of the server tell it, by one of these, or one label
-- below a wildcard.
local function is_told(server)
  if not server or server == "_" then
    return true
  end
  local host = ngx.var.host or ""
  local above = host:match("^[^.]+%.(.+)$")
  return routes.has_name(server, host) or above and routes.has_name(server, "*." .. above)
end

local function attributes(session)
  local parts = {}
  if tonumber(session.expires) then
    parts[#parts + 1] = "Expires=" .. ngx.cookie_time(math.max(0, ngx.time() + tonumber(session.expires)))
  end
  if session.maxage then
    parts[#parts + 1] = "Max-Age=" .. session.maxage
  end
  if session.domain then
    parts[#parts + 1] = "Domain=" .. session.domain
  end
  -- Without one of its own, that of the location, as its Ingress has it.
  parts[#parts + 1] = "Path=" .. (session.path or ngx.var.location_path or "/")
  if session.secure or ngx.var.https == "on" then
    parts[#parts + 1] = "Secure"
  end
  parts[#parts + 1] = "HttpOnly"
  local none = session.samesite == "None" and session.conditional_samesite_none
  if session.samesite and (not none or takes_none(ngx.var.http_user_agent or "")) then
    parts[#parts + 1] = "SameSite=" .. session.samesite
  end
  return table.concat(parts, "; ")
end

-- One cookie, whatever the number of tries: the last one names the endpoint that answered. `server`: whose names tell
-- it; all of them if there is none.
function session_cookie.tell(session, value, server)
  if is_told(server) then
    ngx.header["Set-Cookie"] = session.name .. "=" .. value .. "; " .. attributes(session)
  end
end

return session_cookie
