-- The header section of an answer behind an authenticator: every challenge of it.

local answer = {}

function answer.filter()
  local var = ngx.var
  local challenges = var.fairway_challenges
  if challenges and challenges ~= "" then
    -- Lua writes one line of this name; what is left in the variable becomes another one (add_header).
    local first, others = challenges:match("^([^\n]*)\n?(.*)$")
    var.fairway_challenges = ""
    if ngx.status == 401 then
      ngx.header["WWW-Authenticate"] = first
      var.fairway_challenges = others:gsub("\n", ", ")
    end
  end
end

-- The same for what an authenticator says: nginx itself takes the first of several lines.
function answer.hear()
  local function all(name, separator)
    local value = ngx.header[name]
    return type(value) == "table" and table.concat(value, separator) or value or ""
  end
  ngx.var.auth_cookie = all("Set-Cookie", ", ")
  ngx.var.fairway_challenges = all("WWW-Authenticate", "\n")
end

return answer
