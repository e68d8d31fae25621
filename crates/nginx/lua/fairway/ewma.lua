-- The better one of two: a moving average of response times, weighted by age, shared by all workers. Scores belong
-- to an upstream: a slow path of one Service does not condemn the same Pod for another. Its twin is
-- crates/balance/src/ewma.rs.

local ewma = {}

local scores = ngx.shared.fairway_scores

-- Seconds in which what was measured loses weight by the factor e.
local DECAY = 10
-- Seconds without a measurement after which nothing is left of a score.
local FORGOTTEN = 600

local function key(upstream, peer)
  return upstream.name .. " " .. peer.name
end

-- Milliseconds, as they fit the number that the dictionary keeps beside a value; they start again after 24 days.
local AROUND = 2 ^ 31

local function clock()
  return math.floor(ngx.now() * 1000) % AROUND
end

local function decayed(score, touched, measured, now)
  local age = (now - touched) % AROUND
  -- What another worker has just touched is not older than now.
  age = age < AROUND / 2 and age / 1000 or 0
  local weight = math.exp(-age / DECAY)
  return score * weight + measured * (1 - weight)
end

function ewma.score(upstream, peer, now)
  local score, touched = scores:get(key(upstream, peer))
  return score and decayed(score, touched or 0, 0, now) or 0
end

-- Notes how long an endpoint took, in seconds.
function ewma.measured(upstream, peer, seconds, now)
  now = now or clock()
  local name = key(upstream, peer)
  local score, touched = scores:get(name)
  -- The first measurement is all that is known.
  scores:set(name, score and decayed(score, touched or 0, seconds, now) or seconds, FORGOTTEN, now)
end

-- Endpoints that came start with the mean of those that stay, so that they are neither shunned nor overrun; those
-- that went are forgotten.
function ewma.follow(upstream, before)
  local stay, sum, known = {}, 0, 0
  for _, peer in ipairs(before.usable) do
    stay[peer.name] = peer
  end
  local new = {}
  for _, peer in ipairs(upstream.usable) do
    if stay[peer.name] then
      stay[peer.name] = nil
      local score = scores:get(key(upstream, peer))
      if score then
        sum, known = sum + score, known + 1
      end
    else
      new[#new + 1] = peer
    end
  end
  for _, gone in pairs(stay) do
    scores:delete(key(before, gone))
  end
  if known > 0 then
    for _, peer in ipairs(new) do
      scores:set(key(upstream, peer), sum / known, FORGOTTEN, clock())
    end
  end
end

local function untried(peers, tried)
  if #tried == 0 then
    return peers
  end
  local left = {}
  for _, peer in ipairs(peers) do
    if not tried[peer.name] then
      left[#left + 1] = peer
    end
  end
  return left[1] and left or peers
end

-- The better one of two that were not tried yet; once all were, of all. `random` gives a number below its argument.
function ewma.pick(upstream, tried, random, now)
  local peers = untried(upstream.usable, tried)
  if not peers[2] then
    return peers[1]
  end
  local first, second = 0, 1
  if peers[3] then
    first, second = random(#peers), random(#peers - 1)
    if second >= first then
      second = second + 1
    end
  end
  first, second = peers[first + 1], peers[second + 1]
  now = now or clock()
  return ewma.score(upstream, second, now) < ewma.score(upstream, first, now) and second or first
end

return ewma
