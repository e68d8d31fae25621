-- Stapling: a handshake gets the answer of the authority that is there; where none is, or it is old, one is asked
-- for after the handshake, so that no client waits for a responder.

local lookup = require("fairway.lookup")
local ngx_ocsp = require("ngx.ocsp")
local ssl = require("ngx.ssl")

local ocsp = {}

local staples = ngx.shared.fairway_staples

-- Seconds that an answer is stapled, and after which another one is asked for.
local KEPT, FRESH = 259200, 3600
-- Seconds until a responder that failed is asked again.
local PAUSE = 60
-- Milliseconds to connect, to send and to receive.
local CONNECT, SEND, READ = 1000, 1000, 2000
-- Bytes of an answer at most, and of a responder's name.
local LONGEST, NAME = 65536, 512

-- The body of an answer, once all of it is there: a responder need not close the connection.
local function whole(text)
  local head_end = select(2, text:find("\r\n\r\n", 1, true))
  if not head_end then
    return nil
  end
  local length = tonumber(text:sub(1, head_end):lower():match("\ncontent%-length: *(%d+)"))
  if length and #text >= head_end + length then
    return text:sub(head_end + 1, head_end + length)
  end
end

local function exchange(sock, host, path, body)
  -- HTTP/1.0: the answer comes in one piece.
  local _, err = sock:send({
    "POST ", path, " HTTP/1.0\r\nHost: ", host, "\r\nContent-Type: application/ocsp-request\r\nContent-Length: ",
    tostring(#body), "\r\nConnection: close\r\n\r\n", body,
  })
  if err then
    return nil, err
  end
  local text, answer = "", nil
  while not answer do
    local piece, reason = sock:receiveany(4096)
    text = text .. (piece or "")
    answer = whole(text)
    if not answer and reason == "closed" then
      answer = text:match("\r\n\r\n(.*)$")
      break
    elseif not piece then
      return nil, reason
    elseif #text > LONGEST then
      return nil, "the answer is too long"
    end
  end
  local status = text:match("^HTTP/1%.%d (%d+)")
  if status ~= "200" or not answer then
    return nil, "the responder answered " .. (status or "with nothing that is HTTP")
  end
  return answer
end

local function ask(url, body)
  local host, path = url:match("^http://([^/]+)(.*)$")
  -- What is no character of a URL would end the request's line.
  if not host or path:find("[^%g]") then
    return nil, "only responders with plain HTTP are asked, not " .. url
  end
  -- Who made the certificate may be anybody: it leads where objects may lead.
  local found, err = lookup.find(host, 80, "")
  local peer = found and found.usable[1]
  if not peer then
    return nil, err or "it has no address"
  end
  local sock = ngx.socket.tcp()
  sock:settimeouts(CONNECT, SEND, READ)
  local ok
  ok, err = sock:connect(peer.address, peer.port)
  if not ok then
    return nil, err
  end
  local answer
  answer, err = exchange(sock, host, path == "" and "/" or path, body)
  sock:close()
  return answer, err
end

local function fetch(pem)
  local chain, err = ssl.cert_pem_to_der(pem)
  if not chain then
    return nil, err
  end
  local url
  url, err = ngx_ocsp.get_ocsp_responder_from_der_chain(chain, NAME)
  if not url then
    return nil, err or "the certificate names no responder"
  end
  local body
  body, err = ngx_ocsp.create_ocsp_request(chain)
  if not body then
    return nil, err
  end
  local answer
  answer, err = ask(url, body)
  if not answer then
    return nil, url .. ": " .. tostring(err)
  end
  local ok
  ok, err = ngx_ocsp.validate_ocsp_response(answer, chain)
  if not ok then
    return nil, url .. ": " .. tostring(err)
  end
  return answer
end

local function renew(premature, uid, pem)
  if premature then
    return
  end
  local fine, answer, err = pcall(fetch, pem)
  if not (fine and answer) then
    return ngx.log(ngx.WARN, "no OCSP answer for certificate ", uid, ": ", fine and err or answer)
  end
  staples:set(uid, answer, KEPT)
  staples:set("fresh " .. uid, true, FRESH)
end

-- Staples what is there to the handshake that is under way, and sees to it that there is something next time.
function ocsp.staple(certificate)
  local uid = certificate.uid
  local answer = staples:get(uid)
  if answer then
    local ok, err = ngx_ocsp.set_ocsp_status_resp(answer)
    if not ok then
      ngx.log(ngx.WARN, "cannot staple to certificate ", uid, ": ", err)
    end
  end
  -- One worker asks, and a responder that fails is left alone for a while.
  if not staples:get("fresh " .. uid) and staples:add("asked " .. uid, true, PAUSE) then
    ngx.timer.at(0, renew, uid, certificate.pem)
  end
end

return ocsp
