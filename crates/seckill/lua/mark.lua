-- The mark of an admitted order, prepended to every script that reads or writes one.
-- Text: 1|state|epoch|user_id|voucher_id|admitted_ms|place|traceparent
--   state  q (queued: the place is an id of the orders stream) or d (dead: of the dead stream)
--   place  the one entry that carries the order; any other entry of it is a duplicate
-- Ids stay text: a Lua number has 53 bits.
local SENTINEL = '@'

local function mark_pack(state, epoch, user, voucher, admitted_ms, place, trace)
  return '1|' .. state .. '|' .. epoch .. '|' .. user .. '|' .. voucher .. '|' .. admitted_ms .. '|' .. place .. '|' .. trace
end

local function mark_unpack(text)
  if not text then return nil end
  local state, epoch, user, voucher, admitted_ms, place, trace =
    string.match(text, '^1|([qd])|(%d+)|(%d+)|(%d+)|(%d+)|(%d+%-%d+)|(.*)$')
  if not state then return nil end
  return { state = state, epoch = epoch, user = user, voucher = voucher, admitted_ms = admitted_ms, place = place, trace = trace }
end

local function clock_ms()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

local function integer(n) return string.format('%.0f', n) end
