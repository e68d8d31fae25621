-- Runs the rows of tests/balance through the modules: each line of the body is the input of a row, each line of the
-- answer what the module gives for it. The test that sends them judges.

local canary = require("fairway.canary")
local sticky = require("fairway.sticky")
local upstreams = require("fairway.upstreams")
local cjson = require("cjson")

local tables = {}

local function upstream(name, addresses)
  local endpoints = {}
  for address in addresses:gmatch("[^ ]+") do
    local host, port = address:match("^%[?(.-)%]?:(%d+)$")
    endpoints[#endpoints + 1] = { address = host, port = port }
  end
  return upstreams.compile(cjson.encode({ name = name, endpoints = endpoints }))
end

local function of_draws(number)
  return "draw " .. number
end

local function first()
  return 0
end

local kinds = {}

function kinds.hash(addresses, key)
  local chosen = upstream("u", addresses)
  return chosen.usable[chosen:ring():find(key)].name
end

function kinds.balanced(addresses, key)
  local claim = { mode = "balanced", session = key, tried = {} }
  local peer, new = upstream("u", addresses):sessions():choose(claim, of_draws, first)
  return new and "a new session" or peer.name
end

function kinds.subset(addresses, size, key)
  local chosen, members = upstream("u", addresses), {}
  for draw = 0, size - 1 do
    local at = chosen:subsets(tonumber(size)):find(key, function() return draw end)
    members[#members + 1] = chosen.usable[at].name
  end
  return table.concat(members, " ")
end

function kinds.sessions(name, address)
  local sessions = upstream(name, address):sessions()
  local peer, key = sessions:choose({ mode = "persistent", tried = {} }, of_draws, first)
  local kept, new = sessions:choose({ mode = "persistent", session = key, tried = {} }, of_draws, first)
  assert(peer == kept and not new, "the session was not kept")
  assert(select(2, sticky.read(key .. "|" .. sessions.upstream_key)) == sessions.upstream_key)
  return key .. "\t" .. sessions.upstream_key
end

local function given(cell)
  return cell ~= "-" and cell or nil
end

function kinds.canary(header, test, by_cookie, weight, total, session, value, cookie, draw)
  local rules = { weight = tonumber(weight), weightTotal = tonumber(total) }
  rules.header, rules.cookie = given(header), given(by_cookie)
  local kind, text = test:match("^(%w+)=(.*)$")
  if kind == "value" then
    rules.headerValue = text
  elseif kind == "pattern" then
    rules.headerPattern = text
  elseif test == "broken" then
    rules.headerPatternBroken = true
  end
  local asked = { session = given(session), header = given(value), cookie = given(cookie) }
  return canary.side(rules, asked, function(below)
    assert(tonumber(draw) < below, "a number that is not drawn")
    return tonumber(draw)
  end)
end

function tables.run()
  ngx.req.read_body()
  local kind = kinds[ngx.var.arg_kind]
  for line in ngx.req.get_body_data():gmatch("([^\n]*)\n") do
    local cells = {}
    for cell in (line .. "\t"):gmatch("([^\t]*)\t") do
      cells[#cells + 1] = cell
    end
    ngx.say(kind(unpack(cells)))
  end
end

return tables
