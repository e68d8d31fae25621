-- What happens once in the master and once in each worker.

local start = {}

-- In the master, so that all workers share the compiled modules, and a broken one is found by `nginx -t`.
function start.init()
  require("resty.core")
  local entered = {
    "answer", "balancer", "certificate", "control", "digest", "error_page", "lookup", "measurements", "ocsp", "request",
  }
  for _, module in ipairs(entered) do
    require("fairway." .. module)
  end
end

-- Workers are forks: without a seed of its own each of them would draw the same numbers.
local function seed()
  local source = io.open("/dev/urandom", "rb")
  local bytes = source and source:read(4)
  if source then
    source:close()
  end
  if not bytes or #bytes < 4 then
    return math.randomseed(ngx.time() + ngx.worker.pid())
  end
  local a, b, c, d = bytes:byte(1, 4)
  math.randomseed(((a * 256 + b) * 256 + c) * 256 + d)
end

function start.worker()
  seed()
  require("fairway.measurements").start()
end

return start
