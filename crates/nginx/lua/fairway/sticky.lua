-- Clients that stay with an endpoint: sticky_balanced, where a cookie holds a text that is hashed, and
-- sticky_persistent, where it holds the name of one endpoint. Values are those of the original, so sessions survive
-- its replacement. The twin is crates/balance/src/sticky.rs; tests/balance/sessions.tsv holds both to the same
-- rows.

local chash = require("fairway.chash")

local sticky = {}
sticky.__index = sticky

-- Draws of a new session before it is given up to find an endpoint that has not failed.
local DRAWS = 20
-- Draws at most, however many endpoints are about to end.
local MOST_DRAWS = 1000

-- The second part of the cookies of an upstream: it tells the main side from the canary.
function sticky.upstream_key(name)
  return ngx.md5(ngx.md5(name) .. name)
end

-- The two parts of a value; nothing if there is nothing in it.
function sticky.read(value)
  local parts = value:gmatch("[^|]+")
  return parts(), parts()
end

-- `open` endpoints take new sessions, `ending` ones keep theirs.
function sticky.new(name, open, ending)
  local peers, names, keys, by_key = {}, {}, {}, {}
  for _, list in ipairs({ open, ending }) do
    for _, peer in ipairs(list) do
      local at = #peers + 1
      peers[at], names[at] = peer, peer.name
      keys[at] = ngx.md5(name .. peer.name)
      by_key[keys[at]] = at
    end
  end
  local self = { peers = peers, open = #open, keys = keys, by_key = by_key, ring = chash.new(names) }
  self.upstream_key = sticky.upstream_key(name)
  return setmetatable(self, sticky)
end

function sticky:find(mode, session)
  local at
  if mode == "persistent" then
    at = self.by_key[session]
  else
    at = self.ring:find(session)
  end
  return self.peers[at]
end

local function draw_balanced(self, tried, draw)
  -- Endpoints that are about to end are drawn, too, and not taken.
  local draws = DRAWS * math.ceil(#self.peers / math.max(self.open, 1))
  for number = 1, math.min(draws, MOST_DRAWS) do
    local session = draw(number)
    local at = self.ring:find(session)
    if at and at <= self.open and not tried[self.peers[at].name] then
      return self.peers[at], session
    end
  end
end

local function draw_persistent(self, tried, random)
  local left = {}
  for at = 1, self.open do
    if not tried[self.peers[at].name] then
      left[#left + 1] = at
    end
  end
  if left[1] then
    local at = left[random(#left) + 1]
    return self.peers[at], self.keys[at]
  end
end

-- The endpoint for a request and, where that begins a session, the first part of its cookie. `claim` has the
-- `mode`, the `session` that the cookie names, the endpoints that were `tried`, and whether they end the session
-- (`change_on_failure`). `draw` makes the text of a new balanced session, `random` gives a number below its
-- argument.
function sticky:choose(claim, draw, random)
  local leaves = claim.change_on_failure and #claim.tried > 0
  if claim.session and not leaves then
    local peer = self:find(claim.mode, claim.session)
    if peer then
      return peer
    end
  end
  if claim.mode == "persistent" then
    return draw_persistent(self, claim.tried, random)
  end
  return draw_balanced(self, claim.tried, draw)
end

return sticky
