-- Text with variables, `${name}` and `$1`, as `upstream-hash-by` has it. Reading it happens once, filling it in per
-- request.

local expression = {}

-- A list of texts (strings) and variables (tables with one name).
function expression.read(text)
  local parts, at = {}, 1
  while true do
    local from, to, name = text:find("%${([%w_]+)}", at)
    local digit_from, digit_to, digit = text:find("%$(%d)", at)
    if digit_from and (not from or digit_from < from) then
      from, to, name = digit_from, digit_to, tonumber(digit)
    end
    if not from then
      break
    end
    if from > at then
      parts[#parts + 1] = text:sub(at, from - 1)
    end
    parts[#parts + 1] = { name }
    at = to + 1
  end
  if at <= #text then
    parts[#parts + 1] = text:sub(at)
  end
  return parts
end

-- The text with the values of this request; what is not set is empty.
function expression.fill(parts)
  local texts = {}
  for at, part in ipairs(parts) do
    texts[at] = type(part) == "table" and (ngx.var[part[1]] or "") or part
  end
  return table.concat(texts)
end

return expression
