-- Digest authentication (RFC 7616 with MD5 and qop=auth), with the rules of the module that ingress-nginx has: a number
-- is good for 20 requests within 10 seconds of its first, and five wrong answers lock an address out for five minutes.
-- Each namespace has its own: nobody's mistakes or numbers cost another one anything.

local digest = {}

-- Nothing is dropped from the first to make room; from the second, what is oldest.
local numbers = ngx.shared.fairway_digests
local mistakes = ngx.shared.fairway_mistakes

-- Seconds that a number waits for its first use, and that it is good for after that; uses of one number.
local UNUSED, USED, USES = 60, 10, 20
-- Wrong answers after which an address is no longer listened to, and for how many seconds.
local MISTAKES, LOCKED = 5, 300
-- Uses that are remembered, of which those of one namespace are half, and no more than are left for others.
local KEPT = 65536
-- Addresses that made mistakes in a namespace; those of long ago are forgotten.
local BLAMED = 2048
-- What has to be there once, and not empty.
local FIELDS = { "username", "realm", "nonce", "uri", "qop", "nc", "cnonce", "response" }

local RIGHT, STALE, WRONG = "right", "stale", "wrong"

local function hex(bytes)
  return (bytes:gsub(".", function(byte) return string.format("%02x", byte:byte()) end))
end

-- A key of our own, the same in all workers and after reloads.
local function key()
  local known = numbers:get("key")
  if not known then
    local source = assert(io.open("/dev/urandom", "rb"))
    local fresh = source:read(32)
    source:close()
    -- Another worker may have been first.
    numbers:safe_add("key", fresh)
    known = assert(numbers:get("key"))
  end
  return known
end

-- Whether texts are equal, in a time that does not depend on how they begin.
local function same(one, other)
  return ngx.hmac_sha1(key(), one) == ngx.hmac_sha1(key(), other)
end

local function proof(head, namespace)
  return hex(ngx.hmac_sha1(key(), head .. namespace)):sub(1, 16)
end

-- A number for a challenge of a namespace: the time, something unlike all others, and proof that it is ours. Nothing is
-- kept.
local function number(namespace)
  local head = string.format("%08x%04x%04x", ngx.time(), math.random(0, 65535), math.random(0, 65535))
  return head .. proof(head, namespace)
end

-- Seconds since we gave a number out for a namespace; nothing if we did not.
local function age(nonce, namespace)
  local given = nonce:match("^(%x%x%x%x%x%x%x%x)")
  if #nonce == 32 and given and same(nonce:sub(17), proof(nonce:sub(1, 16), namespace)) then
    return ngx.time() - tonumber(given, 16)
  end
end

-- The text between quotes, and where it goes on behind them.
local function quoted(value, at)
  local pieces = {}
  while true do
    local stop = value:find('["\\]', at)
    if not stop then
      return nil
    end
    pieces[#pieces + 1] = value:sub(at, stop - 1)
    if value:sub(stop, stop) == '"' then
      return table.concat(pieces), stop + 1
    end
    pieces[#pieces + 1] = value:sub(stop + 1, stop + 1)
    at = stop + 2
  end
end

-- The fields of `Digest name=value, name="value"`; nothing where it is no such list or has a name twice.
local function read(value)
  if value:sub(1, 7):lower() ~= "digest " then
    return nil
  end
  local fields, at = {}, value:find("[^%s,]", 8)
  while at do
    local name, begin = value:match('^([^%s=,"]+)=()', at)
    local text, stop
    if name and value:sub(begin, begin) == '"' then
      text, stop = quoted(value, begin + 1)
    elseif name then
      text, stop = value:match('^([^%s,"]*)()', begin)
    end
    name = name and name:lower()
    if not text or fields[name] or not value:find("^%s*,", stop) and value:find("%S", stop) then
      return nil
    end
    fields[name] = text
    at = value:find("[^%s,]", stop)
  end
  for _, name in ipairs(FIELDS) do
    if (fields[name] or "") == "" then
      return nil
    end
  end
  return fields
end

-- The response that proves the secret; with no method, the one by which we prove that we know it, too.
local function response(secret, said, method)
  local request = ngx.md5(method .. ":" .. said.uri)
  return ngx.md5(table.concat({ secret, said.nonce, said.nc, said.cnonce, said.qop, request }, ":"))
end

-- How many uses were remembered in this span of `UNUSED + USED` and in the one before, which is all that may still be;
-- and where they are counted.
local function held(whose)
  local span = math.floor(ngx.now() / (UNUSED + USED))
  local now, before = "held " .. span .. whose, "held " .. (span - 1) .. whose
  return (numbers:get(now) or 0) + (numbers:get(before) or 0), now
end

-- Remembers something of a namespace, unless it is there ("exists") or has no room.
local function keep(name, value, namespace)
  local all, of_all = held("")
  local own, of_own = held(" of " .. namespace)
  if own >= math.min(KEPT / 2, KEPT - all) then
    return nil, "no room"
  end
  local fresh, err = numbers:safe_add(name, value, UNUSED + USED)
  if fresh then
    for _, count in ipairs({ of_all, of_own }) do
      -- With a first value `incr` would make room for it.
      numbers:safe_add(count, 0, 2 * (UNUSED + USED))
      numbers:incr(count, 1)
    end
  end
  return fresh, err
end

-- Uses a number up, once for each count.
local function spend(nonce, count, namespace)
  local seconds = age(nonce, namespace)
  count = count:find("^%x+$") and tonumber(count, 16) or 0
  if not seconds or count == 0 then
    return WRONG
  elseif count >= USES then
    return STALE
  end
  local first = numbers:get("first " .. nonce)
  if not first then
    if seconds >= UNUSED then
      return STALE
    end
    keep("first " .. nonce, ngx.now(), namespace)
    first = numbers:get("first " .. nonce)
  end
  if not first or first + USED <= ngx.now() then
    return STALE
  end
  local fresh, err = keep("spent " .. count .. " " .. nonce, true, namespace)
  if err == "exists" then
    return WRONG
  end
  return fresh and RIGHT or STALE
end

-- An address at the door of a namespace, in few bytes: names are long.
local function name_of(client, namespace)
  return ngx.hmac_sha1(key(), namespace .. " " .. client)
end

-- Counts a mistake. Who is new takes the place of who came first among those that a namespace remembers.
local function blame(client, namespace)
  if mistakes:incr(client, 1) then
    mistakes:expire(client, LOCKED)
    return
  end
  local whose = ngx.hmac_sha1(key(), namespace)
  -- As long as the last of the mistakes may count.
  local long = MISTAKES * LOCKED
  local turn = mistakes:incr("turn " .. whose, 1, 0) or 0
  mistakes:expire("turn " .. whose, long)
  local place = turn % BLAMED .. " " .. whose
  local first = mistakes:get(place)
  if first then
    mistakes:delete(first)
  end
  mistakes:set(place, client, long)
  mistakes:set(client, 1, LOCKED)
end

local function judge(secret, said, var, namespace)
  -- Some clients leave the query out, and are believed (as the original's module does).
  local target = var.request_uri
  local rest = target:sub(#said.uri + 1, #said.uri + 1)
  if not secret or target:sub(1, #said.uri) ~= said.uri or rest ~= "" and rest ~= "?" then
    return WRONG
  elseif not same(response(secret, said, var.request_method), said.response) then
    return WRONG
  end
  return spend(said.nonce, said.nc, namespace)
end

local files = {}

-- The secrets of a file by name; a file never changes, its name says what is in it.
local function secrets(path)
  local known = files[path]
  if not known then
    known = {}
    for line in io.lines(path) do
      local name, secret = line:match("^([^:]*):(%x+)$")
      known[name or ""] = secret
    end
    files[path] = known
  end
  return known
end

-- Lets the request through, or answers it with 401.
function digest.check()
  local var = ngx.var
  local realm, namespace = var.fairway_digest_realm, var.namespace or ""
  local client = name_of(var.remote_addr, namespace)
  if (mistakes:get(client) or 0) >= MISTAKES then
    return ngx.exit(401)
  end
  local said = read(var.http_authorization or "")
  local verdict
  if said and said.realm == realm then
    local secret = secrets(var.fairway_digest_users)[said.username]
    verdict = judge(secret, said, var, namespace)
    if verdict == RIGHT then
      mistakes:delete(client)
      ngx.header["Authentication-Info"] = string.format(
        'qop="auth", rspauth="%s", cnonce="%s", nc=%s', response(secret, said, ""), said.cnonce, said.nc)
      return
    elseif verdict == WRONG then
      blame(client, namespace)
    end
  end
  local stale = verdict == STALE and ', stale="true"' or ""
  ngx.header["WWW-Authenticate"] = string.format(
    'Digest algorithm="MD5", qop="auth", realm="%s", nonce="%s"%s', realm, number(namespace), stale)
  return ngx.exit(401)
end

return digest
