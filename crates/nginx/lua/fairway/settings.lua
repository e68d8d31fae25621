-- Settings of the process as a whole that change without a reload.

local cjson = require("cjson.safe")
local pushed = require("fairway.pushed")
local store = require("fairway.store")

local settings = {}

local KEY = "general"

function settings.text()
  return store.upstreams:get(KEY) or "{}"
end

-- What a push changes.
function settings.changes(body)
  local reason = pushed.bad_settings(body)
  if reason then
    return nil, reason
  end
  return { { dict = store.upstreams, key = KEY, value = cjson.encode(body) } }
end

local known, checked

-- Those of the last push.
function settings.get()
  local revision = store.revision()
  if checked ~= revision then
    known, checked = cjson.decode(settings.text()) or {}, revision
  end
  return known
end

return settings
