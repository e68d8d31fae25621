-- The certificate of a handshake, by the name that the client asks for.

local ssl = require("ngx.ssl")
local certificates = require("fairway.certificates")
local ocsp = require("fairway.ocsp")
local settings = require("fairway.settings")

local certificate = {}

local function present()
  local found, err = certificates.choose(ssl.server_name())
  if not found then
    return nil, err
  end
  ssl.clear_certs()
  local ok
  ok, err = ssl.set_cert(found.chain)
  if not ok then
    return nil, err
  end
  ok, err = ssl.set_priv_key(found.key)
  if not ok then
    return nil, err
  end
  if settings.get()["enable-ocsp"] then
    ocsp.staple(found)
  end
  return true
end

-- A handshake without a certificate is broken off; the worker goes on.
function certificate.present()
  local fine, ok, err = pcall(present)
  if not (fine and ok) then
    ngx.log(ngx.ERR, "no certificate for a handshake: ", err or ok)
    return ngx.exit(ngx.ERROR)
  end
end

return certificate
