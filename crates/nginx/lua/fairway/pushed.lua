-- What a push has to look like. It comes from our own controller, but a worker that believed it blindly would fail
-- requests later, one by one, instead of the push, once.

local cjson = require("cjson.safe")

local pushed = {}

local ALGORITHMS = { round_robin = true, ewma = true, random = true }

local function is_table(value)
  return type(value) == "table"
end

local function is_text(value)
  return type(value) == "string" and value ~= ""
end

local function optional(value, test)
  return value == nil or test(value)
end

local function is_port(value)
  local port = tonumber(value)
  return port and port >= 1 and port <= 65535 and port % 1 == 0
end

local function is_address(value)
  return type(value) == "string" and (value:find("^%d+%.%d+%.%d+%.%d+$") or value:find("^[%x:]*:[%x:.]*$")) ~= nil
end

local function bad_endpoint(list)
  if not optional(list, is_table) then
    return "a list is wanted"
  end
  for _, endpoint in ipairs(list or {}) do
    if not is_table(endpoint) or not is_address(endpoint.address) then
      return "each needs an address"
    elseif not is_port(endpoint.port) then
      return endpoint.address .. " has no port"
    end
  end
end

local function bad_hash(hash)
  if not is_table(hash) or type(hash["upstream-hash-by"]) ~= "string" then
    return "upstream-hash-by is missing"
  end
  local size = hash["upstream-hash-by-subset-size"]
  if hash["upstream-hash-by-subset"] and not (type(size) == "number" and size >= 1 and size % 1 == 0) then
    return "upstream-hash-by-subset-size has to be at least 1"
  end
end

local function bad_affinity(affinity)
  local session = is_table(affinity) and affinity.cookieSessionAffinity
  if not is_table(session) or not is_text(session.name) then
    return "the cookie has no name"
  elseif affinity.mode ~= "balanced" and affinity.mode ~= "persistent" then
    return "mode is neither balanced nor persistent"
  end
  for _, attribute in ipairs({ "expires", "maxage", "path", "domain", "samesite" }) do
    if not optional(session[attribute], is_text) then
      return attribute .. " is no text"
    end
  end
end

-- What is wrong with how requests are spread over one upstream.
local function bad_balance(policy)
  if not optional(policy["load-balance"], function(name) return ALGORITHMS[name] end) then
    return "load-balance is unknown"
  end
  local hash, affinity = policy.upstreamHashByConfig, policy.sessionAffinityConfig
  local reason = hash ~= nil and bad_hash(hash)
  return reason or affinity ~= nil and bad_affinity(affinity) or nil
end

-- What is wrong with who goes to a canary.
local function bad_rules(rules)
  for _, key in ipairs({ "weight", "weightTotal" }) do
    if not optional(rules[key], function(value) return type(value) == "number" and value >= 0 end) then
      return key .. " is no number"
    end
  end
  for _, key in ipairs({ "header", "headerPattern", "cookie" }) do
    if not optional(rules[key], is_text) then
      return key .. " is no text"
    end
  end
end

local function bad_part(part)
  return bad_balance(part) or bad_rules(part)
end

local function bad_route(route)
  local other = route.alternative
  if not optional(route["stand-in"], is_text) then
    return "stand-in is no name"
  elseif not optional(route.spread, is_text) or not optional(route.names, is_text) then
    return "spread or names is no key"
  elseif not optional(other, is_table) or other and not is_text(other.backend) then
    return "the alternative has no backend"
  elseif other and not (optional(other.spread, is_text) and is_text(other.rules)) then
    return "the alternative has no rules"
  end
end

local TEXTS = { part = bad_part, route = bad_route, name = function() end }

-- What is wrong with a text of routes; an empty one takes away.
function pushed.bad_text(key, text)
  local bad = TEXTS[type(key) == "string" and key:match("^(%l+) ") or ""]
  if not bad or type(text) ~= "string" then
    return tostring(key) .. " is no text of a part, a route or a name"
  elseif text == "" or bad == TEXTS.name then
    return nil
  end
  local said, err = cjson.decode(text)
  if not is_table(said) then
    return key .. ": it is no JSON: " .. (err or "a table is wanted")
  end
  local reason = bad(said)
  return reason and key .. ": " .. reason
end

-- What is wrong with an upstream, if anything is.
function pushed.bad_upstream(upstream)
  if not is_table(upstream) or not is_text(upstream.name) then
    return "an upstream has no name"
  end
  local function at(place, reason)
    return "upstream " .. upstream.name .. ", " .. place .. ": " .. reason
  end
  for _, list in ipairs({ "endpoints", "draining" }) do
    local reason = bad_endpoint(upstream[list])
    if reason then
      return at(list, reason)
    end
  end
end

-- What is wrong with certificates and the hosts that have them.
function pushed.bad_servers(body)
  for _, name in ipairs({ "certificates", "servers" }) do
    if not optional(body[name], is_table) then
      return name .. " is no table"
    end
    for key, value in pairs(body[name] or {}) do
      if not is_text(key) or type(value) ~= "string" then
        return name .. ": " .. tostring(key) .. " has no text"
      end
    end
  end
end

-- What is wrong with settings.
function pushed.bad_settings(body)
  local status, metrics = body["http-redirect-code"], body.metrics
  if not optional(status, function(code) return type(code) == "number" and code >= 301 and code <= 308 end) then
    return "http-redirect-code is no status of a redirect"
  elseif not optional(metrics, is_table) or not optional(metrics and metrics.socket, is_text) then
    return "metrics has no socket"
  elseif not optional(metrics and metrics.batch, function(size) return type(size) == "number" and size >= 1 end) then
    return "metrics: batch is no number"
  elseif not optional(body["enable-ocsp"], function(value) return type(value) == "boolean" end) then
    return "enable-ocsp is neither true nor false"
  end
end

return pushed
