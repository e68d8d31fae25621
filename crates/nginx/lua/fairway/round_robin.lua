-- Every endpoint in turn. The turn is shared by all workers, so that endpoints are reached evenly however
-- connections spread over them, and outlives reloads and changes of the endpoints.

local round_robin = {}

local turns = ngx.shared.fairway_turns

function round_robin.pick(upstream)
  local peers = upstream.usable
  if not peers[2] then
    return peers[1]
  end
  -- An old turn that finds no room is forgotten: any beginning is as good.
  local turn = turns:incr(upstream.name, 1, -1) or math.random(#peers)
  return peers[turn % #peers + 1]
end

-- An upstream that is gone has no turn; should it come back, it begins anew.
function round_robin.forget(name)
  turns:delete(name)
end

return round_robin
