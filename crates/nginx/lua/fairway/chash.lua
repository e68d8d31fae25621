-- The same key, the same endpoint: the ring of the original (160 points for each member, CRC32), so that keys and
-- sessions stay where they are. Its twin is crates/balance/src/consistent_hash.rs; tests/balance/hash.tsv holds
-- both to the same rows.

local bit = require("bit")
local band, bnot, bxor, rshift = bit.band, bit.bnot, bit.bxor, bit.rshift

local chash = {}
chash.__index = chash

local POINTS = 160
-- A point is place * MEMBERS + member in one number: sorting needs no comparison in Lua, and equal places go by member.
local MEMBERS = 2 ^ 20

local CRC = {}
for byte = 0, 255 do
  local value = byte
  for _ = 1, 8 do
    if band(value, 1) == 1 then
      value = bxor(rshift(value, 1), 0xEDB88320)
    else
      value = rshift(value, 1)
    end
  end
  CRC[byte] = value
end

local function add(state, byte)
  return bxor(rshift(state, 8), CRC[band(bxor(state, byte), 0xFF)])
end

-- Members are known by these names, which must differ.
function chash.new(names)
  local points = {}
  for member, name in ipairs(names) do
    -- The checksum of the name is worked out once and carried on with each place.
    local base = bnot(0)
    for at = 1, #name do
      base = add(base, name:byte(at))
    end
    local place = 0
    for _ = 1, POINTS do
      local state = base
      for shift = 0, 24, 8 do
        state = add(state, band(rshift(place, shift), 0xFF))
      end
      place = bnot(state)
      points[#points + 1] = place % 2 ^ 32 * MEMBERS + member
    end
  end
  table.sort(points)
  return setmetatable({ points = points }, chash)
end

-- The number of the member that a key belongs to; nothing if there are no members.
function chash:find(key)
  local points = self.points
  local wanted = ngx.crc32_long(key) * MEMBERS
  local low, high = 1, #points + 1
  while low < high do
    local middle = math.floor((low + high) / 2)
    if points[middle] < wanted then
      low = middle + 1
    else
      high = middle
    end
  end
  local point = points[low] or points[1]
  return point and point % MEMBERS
end

return chash
