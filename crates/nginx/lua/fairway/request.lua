-- A request in a location: the redirect to HTTPS, 503 where nobody is, main side or canary; and what is noted at
-- its end.

local canary = require("fairway.canary")
local certificates = require("fairway.certificates")
local ewma = require("fairway.ewma")
local lookup = require("fairway.lookup")
local measurements = require("fairway.measurements")
local routes = require("fairway.routes")
local session_cookie = require("fairway.session_cookie")
local settings = require("fairway.settings")
local sticky = require("fairway.sticky")
local store = require("fairway.store")
local upstreams = require("fairway.upstreams")

local request = {}

-- nginx's page for what is not there.
local NOTHING = "<html>\r\n<head><title>404 Not Found</title></head>\r\n<body>\r\n"
  .. "<center><h1>404 Not Found</h1></center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n"

local function draw(below)
  return math.random(below) - 1
end

local function redirect_to_https(var, wanted, revision)
  if not wanted or var.fairway_scheme ~= "http" then
    return
  end
  if wanted == "certificate" and not certificates.covers(var.host or "", revision) then
    return
  end
  local host = (var.fairway_host_of_client or ""):match("^[^:]*")
  local port = var.fairway_tls_redirect_port or ""
  local uri = var.request_uri
  if var.fairway_tls_redirect_slash ~= "keep" then
    uri = uri:gsub("/$", "")
  end
  local location = "https://" .. host .. (port ~= "" and ":" .. port or "") .. uri
  return ngx.redirect(location, settings.get()["http-redirect-code"] or 308)
end

-- The request header that nginx's variables call `http_<name>`; its lines are joined, which nginx does only since 1.23.
local function header(name)
  for key, value in pairs(ngx.req.get_headers(0, true)) do
    if key:lower():gsub("%-", "_") == name then
      return type(value) == "table" and table.concat(value, ", ") or value
    end
  end
end

-- The side that the client's session belongs to.
local function session_side(route, main, other)
  local session = route.spread.session
  local value = session and session_cookie.read(session.name)
  local _, key = sticky.read(value or "")
  if not key then
    return nil
  elseif key == main:sessions().upstream_key then
    return canary.MAIN
  elseif route.alternative.spread.session and key == other:sessions().upstream_key then
    return canary.CANARY
  end
end

-- The alternative of a route, if this request goes there.
local function alternative(route, main)
  local side = route and route.alternative
  local other = side and upstreams.get(side.backend)
  -- A canary without endpoints takes nothing.
  if not other or other:is_empty() then
    return nil
  end
  local rules = side.rules
  local asked = { session = session_side(route, main, other) }
  if not asked.session then
    asked.header = rules.header and header(rules.header)
    asked.cookie = rules.cookie and ngx.var["cookie_" .. rules.cookie]
  end
  if canary.side(rules, asked, draw) == canary.CANARY then
    return other, side.spread
  end
end

-- Who takes the request of a location whose upstream has no endpoints; nothing if nobody does.
local function stand_in(var, route)
  local name = route and route.stand_in
  local other = name and upstreams.get(name)
  if not other or other:is_empty() then
    return nil
  end
  var.proxy_upstream_name = name
  var.fairway_stands_in = "1"
  return other
end

-- Decides, once for all tries, where the request goes.
local function choose(var, revision)
  local name = var.fairway_upstream
  if not name or name == "" then
    return
  end
  local main = upstreams.get(name, revision)
  local route = routes.get(name, var.fairway_route, revision)
  if not main or main:is_empty() then
    main = stand_in(var, route)
  end
  if not main then
    return ngx.exit(503)
  end
  local other, spread = alternative(route, main)
  if other then
    var.proxy_alternative_upstream_name = other.name
  end
  local names = route and route.names
  ngx.ctx.fairway = { upstream = other or main, policy = spread or route and route.spread, names = names, peer = false }
end

-- Redirects plain HTTP to HTTPS where that is `wanted` ("always", or "certificate": if the host has one), and chooses
-- who serves the others. What is `closed` is there by TLS alone.
function request.enter(wanted, closed)
  local var = ngx.var
  local revision = store.revision()
  redirect_to_https(var, wanted, revision)
  choose(var, revision)
  if closed and var.https ~= "on" then
    return ngx.exit(403)
  end
end

-- What the default backend answers of itself, as an answer: nginx itself fails nowhere here, so no error_page is for
-- it.
function request.nothing()
  ngx.status = 404
  ngx.header["Content-Type"] = "text/html"
  ngx.header["Content-Length"] = #NOTHING
  ngx.req.discard_body()
  ngx.print(NOTHING)
end

-- What is asked beside a request (external authentication, mirrors) is nothing that an X-Accel-Redirect leads to.
function request.aside()
  if not ngx.is_subrequest then
    return ngx.exit(404)
  end
end

-- The same where variables say who is asked: finds out where that leads, once for all tries. `port`: that of the
-- scheme.
function request.lead(port)
  request.aside()
  local var = ngx.var
  local found, reason = lookup.find(var.fairway_authority, port, var.namespace or "")
  if not found then
    ngx.log(ngx.WARN, "nobody is asked at \"", var.fairway_authority, "\": ", reason)
    return ngx.exit(502)
  end
  ngx.ctx.fairway = { upstream = found, in_turn = true, peer = false }
end

-- The last of the values that nginx lists for all tries.
local function last(text)
  return tonumber((text or ""):match("([%d.]+)%s*$"))
end

function request.leave()
  local chosen = ngx.ctx.fairway
  local policy = chosen and chosen.policy
  if policy and policy["load-balance"] == "ewma" and not policy.session and not policy.key and chosen.peer then
    local var = ngx.var
    -- The time to connect counts twice, as in the original.
    local seconds = (last(var.upstream_connect_time) or 0) + (last(var.upstream_response_time) or 0)
    ewma.measured(chosen.upstream, chosen.peer, seconds)
  end
  measurements.note()
end

return request
