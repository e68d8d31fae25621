-- What each request took, sent to the controller in batches once a second.

local cjson = require("cjson.safe")
local settings = require("fairway.settings")

local measurements = {}

-- Seconds between two batches, and milliseconds that sending one may take.
local PAUSE, PATIENCE = 1, 1000
-- Requests of a batch where the controller names no number.
local MOST = 10000

local batch, dropped = {}, 0

local function text(value)
  return value and value ~= "" and value or "-"
end

local function number(value)
  return tonumber(value) or -1
end

local function send(socket, body)
  local sock = ngx.socket.tcp()
  sock:settimeout(PATIENCE)
  local ok, err = sock:connect("unix:" .. socket)
  if ok then
    ok, err = sock:send(body)
    sock:close()
  end
  return ok, err
end

local function flush()
  if #batch == 0 then
    return
  end
  local metrics = settings.get().metrics
  local full, lost = batch, dropped
  batch, dropped = {}, 0
  if lost > 0 then
    ngx.log(ngx.WARN, lost, " requests were not measured: raise --monitor-max-batch-size")
  end
  if metrics then
    local ok, err = send(metrics.socket, cjson.encode(full))
    if not ok then
      ngx.log(ngx.WARN, "a batch of ", #full, " measurements was lost: ", err)
    end
  end
end

local function try_flush()
  local fine, reason = pcall(flush)
  if not fine then
    ngx.log(ngx.ERR, "cannot send measurements: ", reason)
  end
end

-- Adds the request that ends.
function measurements.note()
  local metrics = settings.get().metrics
  if not metrics then
    return
  elseif #batch >= (metrics.batch or MOST) then
    dropped = dropped + 1
    return
  end
  local var = ngx.var
  batch[#batch + 1] = {
    host = text(var.host),
    namespace = text(var.namespace),
    ingress = text(var.ingress_name),
    service = text(var.service_name),
    canary = text(var.proxy_alternative_upstream_name),
    path = text(var.location_path),
    method = text(var.request_method),
    status = text(var.status),
    requestLength = number(var.request_length),
    requestTime = number(var.request_time),
    responseLength = number(var.bytes_sent),
    upstreamLatency = number(var.upstream_connect_time),
    upstreamHeaderTime = number(var.upstream_header_time),
    upstreamResponseTime = number(var.upstream_response_time),
    upstreamResponseLength = number(var.upstream_response_length),
  }
  if #batch == 1 and ngx.worker.exiting() then
    -- A worker that a reload leaves behind has no clock any more.
    ngx.timer.at(0, try_flush)
  end
end

-- In each worker.
function measurements.start()
  local ok, err = ngx.timer.every(PAUSE, try_flush)
  if not ok then
    ngx.log(ngx.CRIT, "there will be no measurements: ", err)
  end
end

return measurements
