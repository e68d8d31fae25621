-- Which certificate a host has: its own entry, or that of the wildcard above it. `_` is the default. Two tables in
-- shared memory, host to uid and uid to PEM; keys are nowhere else.

local ssl = require("ngx.ssl")
local lrucache = require("resty.lrucache")
local store = require("fairway.store")

local certificates = {}

local HOST, PEM = "host ", "pem "
local DEFAULT = "_"
-- Takes the entry of a host away, as in the original.
local NO_UID = "-1"
-- Certificates that a worker keeps ready for handshakes.
local READY = 2000
-- Hosts that a worker remembers to have a certificate, or none, and how long their names may be (RFC 1035).
local HOSTS, LONGEST = 2000, 255

local dict = store.certificates
-- What is under a uid never changes: another content has another uid.
local ready = lrucache.new(READY)

-- Lower case, without a dot at the end.
function certificates.canonical(host)
  return (host:gsub("%.$", ""):lower())
end

local function wildcard(host)
  local parent = host:match("^[^.]+%.(.+)$")
  return parent and "*." .. parent
end

-- The uid of a host, by its own name or that of the wildcard above it.
function certificates.entry(host)
  local uid = dict:get(HOST .. host)
  if uid then
    return uid
  end
  local above = wildcard(host)
  return above and dict:get(HOST .. above)
end

-- Hosts that were asked for since the last push, how many they are, and the revision of that push.
local covered, known, covered_at = {}, 0, nil

-- Whether there is a certificate for this host, as a request names it; `revision` is that of the store.
function certificates.covers(host, revision)
  if covered_at ~= revision or known == HOSTS then
    covered, known, covered_at = {}, 0, revision
  end
  local found = covered[host]
  if found == nil then
    found = certificates.entry(certificates.canonical(host)) ~= nil
    if #host <= LONGEST then
      covered[host], known = found, known + 1
    end
  end
  return found
end

local function prepare(uid)
  local pem = dict:get(PEM .. uid)
  if not pem then
    return nil, "it was not pushed"
  end
  local chain, err = ssl.parse_pem_cert(pem)
  if not chain then
    return nil, err
  end
  local key
  key, err = ssl.parse_pem_priv_key(pem)
  if not key then
    return nil, err
  end
  return { uid = uid, chain = chain, key = key, pem = pem }
end

-- Chain and key of a uid, ready for handshakes.
function certificates.get(uid)
  local found = ready:get(uid)
  if not found then
    local err
    found, err = prepare(uid)
    if not found then
      return nil, err
    end
    ready:set(uid, found)
  end
  return found
end

-- The certificate for a handshake that names `host`, which may be nothing.
function certificates.choose(host)
  local uid = host and certificates.entry(certificates.canonical(host))
  local found, err
  if uid and uid ~= DEFAULT then
    found, err = certificates.get(uid)
    if found then
      return found
    end
    ngx.log(ngx.ERR, "certificate ", uid, " cannot be used: ", err)
  end
  uid = dict:get(HOST .. DEFAULT)
  if not uid then
    return nil, "no default certificate was pushed"
  end
  return certificates.get(uid)
end

local function keys_with(prefix)
  local found = {}
  for _, key in ipairs(dict:get_keys(0)) do
    if key:sub(1, #prefix) == prefix then
      found[key:sub(#prefix + 1)] = true
    end
  end
  return found
end

-- Every host with its uid.
function certificates.hosts()
  local hosts = {}
  for host in pairs(keys_with(HOST)) do
    hosts[host] = dict:get(HOST .. host)
  end
  return hosts
end

-- The certificates of exactly this host in PEM, without the key.
function certificates.chain_of(host)
  local uid = dict:get(HOST .. certificates.canonical(host))
  local pem = uid and dict:get(PEM .. uid)
  if not pem then
    return nil
  end
  local chain = {}
  for certificate in pem:gmatch("%-%-%-%-%-BEGIN CERTIFICATE%-%-%-%-%-.-%-%-%-%-%-END CERTIFICATE%-%-%-%-%-\n?") do
    chain[#chain + 1] = certificate
  end
  return table.concat(chain)
end

local function add(changes, prefix, named, gone, taken_away)
  for key, value in pairs(named or {}) do
    key = prefix == HOST and key:lower() or key
    if value == taken_away then
      gone[key] = true
    else
      gone[key] = nil
      changes[#changes + 1] = { dict = dict, key = prefix .. key, value = value }
    end
  end
  for key in pairs(gone) do
    changes[#changes + 1] = { dict = dict, key = prefix .. key }
  end
end

-- What a push changes; with `replaces`, there is nothing else afterwards. Certificates are tried before they are taken.
function certificates.changes(body, replaces)
  for uid, pem in pairs(body.certificates or {}) do
    if pem ~= "" then
      local chain, err = ssl.parse_pem_cert(pem)
      local key = chain and ssl.parse_pem_priv_key(pem)
      if not key then
        return nil, "certificate " .. uid .. " cannot be used: " .. (err or "it has no key that can be read")
      end
    end
  end
  local changes = {}
  add(changes, PEM, body.certificates, replaces and keys_with(PEM) or {}, "")
  add(changes, HOST, body.servers, replaces and keys_with(HOST) or {}, NO_UID)
  return changes
end

return certificates
