-- Who words an error: the error backend of the location, else that of the process, else nginx itself.

local upstreams = require("fairway.upstreams")

local error_page = {}

function error_page.enter()
  local var = ngx.var
  for _, name in ipairs({ var.fairway_upstream, var.fairway_error_fallback }) do
    local found = name ~= "" and upstreams.get(name)
    if found and not found:is_empty() then
      ngx.ctx.fairway = { upstream = found }
      return
    end
  end
  return ngx.exit(404)
end

return error_page
