-- The requests of the controller on the unix socket: what changes without a reload (README.md has the table of them).

local cjson = require("cjson.safe")
local certificates = require("fairway.certificates")
local ewma = require("fairway.ewma")
local pushed = require("fairway.pushed")
local round_robin = require("fairway.round_robin")
local settings = require("fairway.settings")
local store = require("fairway.store")
local upstreams = require("fairway.upstreams")

local control = {}

local INITIALIZED = "initialized"

local function answer(status, text, kind)
  ngx.status = status
  ngx.header["Content-Type"] = kind or "text/plain"
  ngx.header["X-Generation"] = store.generation()
  ngx.print(text)
  return ngx.exit(status)
end

local function refuse(status, reason)
  return answer(status, tostring(reason) .. "\n")
end

-- A field as it was sent: what nginx and its modules know of fields the ConfigMap can change.
local function field(wanted)
  for line in ngx.req.raw_header(true):gmatch("[^\r\n]+") do
    local name, value = line:match("^([^:]+):[ \t]*(.-)[ \t]*$")
    if name and name:lower() == wanted then
      return value
    end
  end
end

-- In the body, too, which the words of `http` for fields of answers do not reach; a whole line, since they may cut it.
local function answer_generation(status)
  return answer(status, store.generation() .. "\n")
end

-- The body as JSON. It is never in a file: it may hold keys.
local function read_body()
  ngx.req.read_body()
  local text = ngx.req.get_body_data()
  if not text then
    return nil, "there is no body, or it is larger than client_body_buffer_size"
  end
  local body, err = cjson.decode(text)
  if type(body) ~= "table" then
    return nil, "the body is no JSON: " .. (err or "a list or an object is wanted")
  end
  return body
end

local function push(prepare)
  local after = field("x-after")
  if after and not tonumber(after) then
    return refuse(400, "X-After is no number")
  end
  local body, reason = read_body()
  if not body then
    return refuse(400, reason)
  end
  local generation, status
  generation, status, reason = store.push(tonumber(after), function()
    return prepare(body)
  end)
  if not generation then
    return refuse(status, reason)
  end
  return answer_generation(201)
end

local function upstream_names()
  local names, prefix = {}, upstreams.PREFIX
  for _, key in ipairs(store.upstreams:get_keys(0)) do
    if key:sub(1, #prefix) == prefix then
      names[key:sub(#prefix + 1)] = true
    end
  end
  return names
end

-- An empty list would become an empty object.
local function encode(upstream)
  for _, list in ipairs({ "endpoints", "draining" }) do
    if upstream[list] and not upstream[list][1] then
      upstream[list] = nil
    end
  end
  return cjson.encode(upstream)
end

-- Adds the change of one upstream, if it is one; its scores follow the endpoints.
local function add_change(changes, name, text)
  local before = store.upstreams:get(upstreams.PREFIX .. name)
  if before == text then
    return
  elseif before then
    local after = text or cjson.encode({ name = name })
    ewma.follow(upstreams.compile(after), upstreams.compile(before))
  end
  changes[#changes + 1] = { dict = store.upstreams, key = upstreams.PREFIX .. name, value = text }
end

local function change_upstreams(list, gone)
  local changes, texts = {}, {}
  for _, upstream in ipairs(list) do
    local reason = pushed.bad_upstream(upstream)
    if reason then
      return nil, reason
    elseif upstream.gone then
      gone[upstream.name] = true
    else
      gone[upstream.name] = nil
      texts[upstream.name] = encode(upstream)
    end
  end
  for name, text in pairs(texts) do
    add_change(changes, name, text)
  end
  if next(gone) then
    for name in pairs(gone) do
      round_robin.forget(name)
      add_change(changes, name, nil)
    end
    changes[#changes + 1] = store.removal()
  end
  changes[#changes + 1] = { dict = store.upstreams, key = INITIALIZED, value = true }
  return changes
end

local function is_list(body)
  return next(body) == nil or body[1] ~= nil
end

local function all_upstreams(body)
  if not is_list(body) then
    return nil, "a list of upstreams is wanted"
  end
  return change_upstreams(body, upstream_names())
end

local function some_upstreams(body)
  if not is_list(body) then
    return nil, "a list of upstreams is wanted"
  end
  return change_upstreams(body, {})
end

-- Texts of routes by key; an empty one goes.
local function some_routes(body)
  local changes, gone = {}, false
  for key, text in pairs(body) do
    local reason = pushed.bad_text(key, text)
    if reason then
      return nil, reason
    end
    gone = gone or text == ""
    changes[#changes + 1] = { dict = store.upstreams, key = key, value = text ~= "" and text or nil }
  end
  if gone then
    changes[#changes + 1] = store.removal()
  end
  return changes
end

local function show_upstreams()
  local texts = {}
  for name in pairs(upstream_names()) do
    texts[#texts + 1] = store.upstreams:get(upstreams.PREFIX .. name)
  end
  table.sort(texts)
  return answer(200, "[" .. table.concat(texts, ",") .. "]", "application/json")
end

local function show_chain()
  local host = ngx.req.get_uri_args(10).hostname
  if type(host) ~= "string" then
    return refuse(400, "the parameter hostname is missing")
  end
  local chain = certificates.chain_of(host)
  if not chain then
    return refuse(404, host .. " has no certificate of its own")
  end
  return answer(200, chain)
end

local function servers(replaces)
  return function(body)
    local reason = pushed.bad_servers(body)
    if reason then
      return nil, reason
    end
    return certificates.changes(body, replaces)
  end
end

local routes = {
  ["/configuration/backends"] = {
    GET = show_upstreams,
    POST = function() return push(all_upstreams) end,
    PATCH = function() return push(some_upstreams) end,
  },
  ["/configuration/routes"] = {
    POST = function() return push(some_routes) end,
  },
  ["/configuration/servers"] = {
    GET = function() return answer(200, cjson.encode(certificates.hosts()), "application/json") end,
    POST = function() return push(servers(false)) end,
    PUT = function() return push(servers(true)) end,
  },
  ["/configuration/certs"] = { GET = show_chain },
  ["/configuration/generation"] = { GET = function() return answer_generation(200) end },
  ["/configuration/general"] = {
    GET = function() return answer(200, settings.text(), "application/json") end,
    POST = function() return push(settings.changes) end,
  },
}

-- Lets nobody in but the controller: an address that an object names must never be this socket, and if it is all the
-- same, it is of no use.
function control.admit()
  local secret = ngx.var.fairway_secret
  if secret == "" or field("x-fairway-secret") ~= secret then
    return ngx.exit(403)
  end
end

function control.serve()
  local methods = routes[ngx.var.uri]
  if not methods then
    return refuse(404, "there is nothing called " .. ngx.var.uri)
  end
  local serve = methods[ngx.req.get_method()]
  if not serve then
    return refuse(400, ngx.req.get_method() .. " means nothing here")
  end
  return serve()
end

-- Whether upstreams were pushed yet.
function control.ready()
  if not store.upstreams:get(INITIALIZED) then
    return refuse(500, "nothing was pushed yet")
  end
  return answer(200, "OK\n")
end

return control
