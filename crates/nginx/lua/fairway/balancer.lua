-- The endpoint for each try of a request.

local balancer = require("ngx.balancer")
local ewma = require("fairway.ewma")
local expression = require("fairway.expression")
local round_robin = require("fairway.round_robin")
local session_cookie = require("fairway.session_cookie")
local sticky = require("fairway.sticky")
local upstreams = require("fairway.upstreams")

local module = {}

-- Tries where nginx.conf sets no bound.
local MANY = 32
-- What nginx takes for "nobody is there": 502.
local BUSY = -3
-- The endpoints of a request that has had no try yet.
local NONE = {}

local function draw(below)
  return math.random(below) - 1
end

local function draw_session(number)
  return string.format("%.3f.%d.%d", ngx.now() + number, ngx.worker.pid(), math.random(999999))
end

local function by_session(chosen, session)
  local sessions = chosen.upstream:sessions()
  local value = session_cookie.read(session.name)
  local claim = {
    mode = session.mode,
    session = value and sticky.read(value),
    tried = chosen.tried or NONE,
    change_on_failure = session.change_on_failure,
  }
  local peer, new = sessions:choose(claim, draw_session, draw)
  if peer and new then
    session_cookie.tell(session, new .. "|" .. sessions.upstream_key, chosen.names)
  end
  return peer
end

local function choose(chosen)
  local upstream, policy = chosen.upstream, chosen.policy
  if chosen.in_turn then
    -- Each address of a name once.
    return upstream.usable[#(chosen.tried or NONE) + 1]
  elseif not policy then
    return round_robin.pick(upstream)
  elseif policy.session then
    return by_session(chosen, policy.session)
  elseif policy.key then
    local key = expression.fill(policy.key)
    local at
    if policy.subset then
      at = upstream:subsets(policy.subset):find(key, draw)
    else
      at = upstream:ring():find(key)
    end
    return upstream.usable[at]
  elseif policy["load-balance"] == "ewma" then
    return ewma.pick(upstream, chosen.tried or NONE, draw)
  elseif policy["load-balance"] == "random" then
    return upstream.usable[draw(#upstream.usable) + 1]
  end
  return round_robin.pick(upstream)
end

-- A location that a snippet has names its upstream itself, as in ingress-nginx.
local function named_by_snippet()
  local upstream = upstreams.get(ngx.var.proxy_upstream_name or "")
  local chosen = upstream and { upstream = upstream }
  ngx.ctx.fairway_named = chosen
  return chosen
end

-- Notes the endpoint of the try that failed. Most requests have one try, and need no list.
local function note_failure(chosen)
  local tried = chosen.tried or {}
  tried[#tried + 1] = chosen.peer.name
  tried[chosen.peer.name] = true
  chosen.tried = tried
end

local function pick()
  local chosen = ngx.ctx.fairway or ngx.ctx.fairway_named or named_by_snippet()
  if not chosen then
    return nil, "no location of the controller was met, and $proxy_upstream_name names no upstream"
  end
  if chosen.peer then
    note_failure(chosen)
  end
  local peer = choose(chosen)
  if not peer then
    return nil, "no endpoint of " .. chosen.upstream.name .. " is left to try"
  end
  if #(chosen.tried or NONE) < MANY then
    balancer.set_more_tries(1)
  end
  chosen.peer = peer
  return balancer.set_current_peer(peer.address, peer.port)
end

function module.pick()
  local fine, ok, err = pcall(pick)
  if not (fine and ok) then
    ngx.log(ngx.ERR, "no endpoint was chosen: ", err or ok)
    return ngx.exit(BUSY)
  end
end

return module
