-- The upstreams as workers use them: read from shared memory when they are first asked for after a push, so that a
-- push costs a worker only what it changed and what is in use.

local cjson = require("cjson.safe")
local chash = require("fairway.chash")
local chashsubset = require("fairway.chashsubset")
local sticky = require("fairway.sticky")
local store = require("fairway.store")

local upstreams = {}
local upstream = {}
upstream.__index = upstream

-- Keys of the dictionary: this and the name of the upstream.
upstreams.PREFIX = "upstream "

local function peers_of(list)
  local peers = {}
  for at, endpoint in ipairs(list or {}) do
    local address = endpoint.address
    if address:find(":", 1, true) then
      address = "[" .. address .. "]"
    end
    local port = tonumber(endpoint.port)
    peers[at] = { address = address, port = port, name = address .. ":" .. port }
  end
  return peers
end

-- What JSON says about an upstream, ready for use.
function upstreams.compile(text)
  local said = assert(cjson.decode(text))
  local self = { name = said.name }
  self.ready, self.draining = peers_of(said.endpoints), peers_of(said.draining)
  -- Endpoints that are about to end serve while nothing else does.
  self.usable = self.ready[1] and self.ready or self.draining
  return setmetatable(self, upstream)
end

-- Rings and sessions are computed by the first request that needs them.
function upstream:ring()
  if not self.hashed then
    local names = {}
    for at, peer in ipairs(self.usable) do
      names[at] = peer.name
    end
    self.hashed = chash.new(names)
  end
  return self.hashed
end

function upstream:subsets(size)
  self.sets = self.sets or {}
  self.sets[size] = self.sets[size] or chashsubset.new(#self.usable, size)
  return self.sets[size]
end

function upstream:sessions()
  if not self.kept then
    local none_ready = not self.ready[1]
    local open, ending = self.ready, self.draining
    if none_ready then
      open, ending = self.draining, {}
    end
    self.kept = sticky.new(self.name, open, ending)
  end
  return self.kept
end

function upstream:is_empty()
  return self.usable[1] == nil
end

local known, known_removals = {}, 0

-- The upstream with this name, as the last push has it; nothing if there is none. Who asks twice may know the
-- `revision` of the store.
function upstreams.get(name, revision)
  revision = revision or store.revision()
  local entry = known[name]
  if entry and entry.checked == revision then
    return entry.upstream
  end
  local removals = store.removals()
  if removals ~= known_removals then
    -- Those that went are never asked for again, so nobody else would drop them.
    known, known_removals, entry = {}, removals, nil
  end
  local text = store.upstreams:get(upstreams.PREFIX .. name)
  if not text then
    known[name] = nil
    return nil
  end
  if not entry or entry.text ~= text then
    entry = { text = text, upstream = upstreams.compile(text) }
    known[name] = entry
  end
  entry.checked = revision
  return entry.upstream
end

return upstreams
