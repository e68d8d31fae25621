-- What was pushed, in shared memory: it outlives reloads, and one number tells workers that something changed.

local store = {}

local GENERATION = "generation"
local REVISION = "revision"
local PUSHING = "pushing"
local REMOVALS = "removals"
-- Seconds after which a push whose worker died no longer keeps others out.
local PUSH_TAKES = 10

store.upstreams = ngx.shared.fairway
store.certificates = ngx.shared.fairway_certificates

-- Grows with every change of what is kept here, even one that is taken back; all that workers keep is compared with it.
function store.revision()
  return store.upstreams:get(REVISION) or 0
end

-- The number of pushes that were taken, by which the controller knows what is here.
function store.generation()
  return store.upstreams:get(GENERATION) or 0
end

-- Counts the pushes that took something away.
function store.removals()
  return store.upstreams:get(REMOVALS) or 0
end

-- The change that counts one more of them.
function store.removal()
  return { dict = store.upstreams, key = REMOVALS, value = store.removals() + 1 }
end

-- Puts back what was there before the first `count` changes. What they brought goes first, so that there is room.
local function undo(changes, count)
  for at = 1, count do
    changes[at].dict:delete(changes[at].key)
  end
  for at = 1, count do
    local change = changes[at]
    if change.before ~= nil then
      local ok, err = change.dict:safe_set(change.key, change.before)
      if not ok then
        ngx.log(ngx.CRIT, "cannot put back ", change.key, " after a push that failed: ", err)
      end
    end
  end
end

local function write(changes)
  for at, change in ipairs(changes) do
    change.before = change.dict:get(change.key)
    if change.value == nil then
      change.dict:delete(change.key)
    else
      local ok, err = change.dict:safe_set(change.key, change.value)
      if not ok then
        undo(changes, at)
        -- A worker may have read what was taken back.
        store.upstreams:incr(REVISION, 1, 0)
        return nil, err
      end
    end
  end
  local generation = store.upstreams:incr(GENERATION, 1, 0)
  store.upstreams:incr(REVISION, 1, 0)
  return generation
end

local function attempt(after, prepare)
  local current = store.generation()
  if after and after ~= current then
    return nil, 409, "this follows generation " .. after .. ", but there is generation " .. current
  end
  local changes, reason = prepare()
  if not changes then
    return nil, 400, reason
  end
  local generation, err = write(changes)
  if not generation then
    return nil, 507, "there is more than lua_shared_dict has room for (" .. err .. ")"
  end
  return generation
end

-- Makes all of the changes that `prepare` lists, or none: each has a `dict`, a `key` and a `value` (none takes the
-- key away). `after`, if given, is the generation that they follow. Returns the new generation, or nil, a status
-- and a reason.
function store.push(after, prepare)
  -- Safe: nothing else is dropped to make room for it.
  local alone, err = store.upstreams:safe_add(PUSHING, true, PUSH_TAKES)
  if not alone then
    return nil, 409, "another push is under way (" .. err .. ")"
  end
  local fine, generation, status, reason = pcall(attempt, after, prepare)
  store.upstreams:delete(PUSHING)
  if not fine then
    return nil, 500, generation
  end
  return generation, status, reason
end

return store
