-- Main side or canary: affinity before header, header before cookie, cookie before weight. The rules hang on the
-- route, not on the upstream. The twin is crates/balance/src/canary.rs; tests/balance/canary.tsv holds both to the
-- same rows.

local canary = {}

local MAIN, CANARY = "main", "canary"
canary.MAIN, canary.CANARY = MAIN, CANARY

local function by_word(value)
  if value == "always" then
    return CANARY
  elseif value == "never" then
    return MAIN
  end
end

local function by_header(rules, value)
  if rules.headerPatternBroken then
    return MAIN
  elseif rules.headerValue then
    return value == rules.headerValue and CANARY or nil
  elseif rules.headerPattern then
    local from, _, err = ngx.re.find(value, rules.headerPattern, "jo")
    if err then
      -- A pattern that is none, or that takes more steps than there may be.
      return MAIN
    end
    return from and CANARY or nil
  end
  return by_word(value)
end

-- The side for a request. `asked` is what it says: the side of its `session`, the `header` and the `cookie` that
-- the rules name, absent where it has none. `random` gives a number below its argument.
function canary.side(rules, asked, random)
  local side = asked.session
  if not side and rules.header and asked.header then
    side = by_header(rules, asked.header)
  end
  if not side and rules.cookie and asked.cookie then
    side = by_word(asked.cookie)
  end
  if side then
    return side
  end
  -- The total counts only above 100.
  local total = math.max(rules.weightTotal or 0, 100)
  return random(total) < (rules.weight or 0) and CANARY or MAIN
end

return canary
