-- Where locations lead to, as workers use it: how requests are spread, canaries, who stands in. What may be long is in
-- parts, which many routes share; all of it is read from shared memory when it is first asked for after a push.

local cjson = require("cjson.safe")
local expression = require("fairway.expression")
local store = require("fairway.store")

local routes = {}

-- Keys of the dictionary begin with these.
routes.PART, routes.ROUTE, routes.NAME = "part ", "route ", "name "

-- What a part says that is not there.
local NOTHING = {}

local function prepare(part)
  local hash = part.upstreamHashByConfig
  if hash then
    part.key = expression.read(hash["upstream-hash-by"])
    part.subset = hash["upstream-hash-by-subset"] and hash["upstream-hash-by-subset-size"]
  end
  local session = part.sessionAffinityConfig
  part.session = session and session.cookieSessionAffinity
  if part.session then
    part.session.mode = session.mode
  end
  return part
end

-- Parts and routes that were asked for, by key and by upstream and name. What is under the key of a part never changes.
local parts, known, known_removals = {}, {}, 0

local function part(key)
  local found = parts[key]
  if not found then
    local text = store.upstreams:get(key)
    found = text and prepare(assert(cjson.decode(text)))
    parts[key] = found
  end
  return found
end

-- What JSON says about a route, ready for use, and whether all parts of it are there.
local function compile(text)
  local said, complete = assert(cjson.decode(text)), true
  local function named(key)
    local found = key and part(key)
    complete = complete and (found or not key)
    return found or NOTHING
  end
  local route = { spread = named(said.spread), stand_in = said["stand-in"], names = said.names }
  local other = said.alternative
  if other then
    route.alternative = { backend = other.backend, spread = named(other.spread), rules = named(other.rules) }
  end
  return route, complete
end

local function entry_of(upstream, name)
  local of_upstream = known[upstream]
  if not of_upstream then
    of_upstream = {}
    known[upstream] = of_upstream
  end
  local entry = of_upstream[name]
  if not entry then
    entry = {}
    of_upstream[name] = entry
  end
  return entry
end

-- The route with this name to an upstream, as the last push has it; nothing if nothing is asked for there. `revision`
-- is that of the store.
function routes.get(upstream, name, revision)
  if not name or name == "" then
    return nil
  end
  local entry = entry_of(upstream, name)
  if entry.checked == revision then
    return entry.route
  end
  local removals = store.removals()
  if removals ~= known_removals then
    -- Those that went are never asked for again, so nobody else would drop them.
    parts, known, known_removals = {}, {}, removals
    entry = entry_of(upstream, name)
  end
  local text = store.upstreams:get(routes.ROUTE .. upstream .. " " .. name)
  if not text then
    entry.text, entry.route = nil, nil
  elseif entry.text ~= text then
    local complete
    entry.route, complete = compile(text)
    entry.text = complete and text
  end
  entry.checked = revision
  return entry.route
end

-- Whether clients of a server are told their session under this name.
function routes.has_name(server, name)
  return store.upstreams:get(routes.NAME .. server .. " " .. name) ~= nil
end

return routes
