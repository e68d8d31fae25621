-- The header section of an answer: Strict-Transport-Security on TLS, and every challenge of an authenticator.

local response = require("ngx.resp")

local answer = {}

local function lines(text)
  local all = {}
  for line in text:gmatch("[^\n]+") do
    all[#all + 1] = line
  end
  return all
end

function answer.filter()
  local var = ngx.var
  local hsts = var.fairway_hsts
  if hsts and hsts ~= "" then
    ngx.header["Strict-Transport-Security"] = hsts
  end
  local challenges = var.fairway_challenges
  if ngx.status == 401 and challenges and challenges ~= "" then
    ngx.header["WWW-Authenticate"] = nil
    for _, line in ipairs(lines(challenges)) do
      response.add_header("WWW-Authenticate", line)
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
