-- The same key, the same few endpoints: sets of a fixed size in the order of the cluster, the last one filled up
-- from the front, hashed as single endpoints are. Its twin is crates/balance/src/subset.rs.

local chash = require("fairway.chash")

local chashsubset = {}
chashsubset.__index = chashsubset

function chashsubset.new(count, size)
  local names = {}
  for number = 1, math.ceil(count / size) do
    names[number] = "set" .. number
  end
  return setmetatable({ ring = chash.new(names), size = size, count = count }, chashsubset)
end

-- The number of an endpoint of the set that a key belongs to. `random` gives a number below its argument.
function chashsubset:find(key, random)
  local set = self.ring:find(key)
  return set and ((set - 1) * self.size + random(self.size)) % self.count + 1
end

return chashsubset
