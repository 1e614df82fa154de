-- Takes a lock, takes it once more, or gets in line for it.
--
-- KEYS  1 lock (hash: owner -> depth)   2 fence (string: the last fencing number)
--       3 line (zset: owner -> when it came, in us)   4 waiting (zset: owner -> when it counts as gone, in ms)
-- ARGV  1 owner token   2 the owner's depth before, by its own count: a call that is repeated counts once
--       3 lease in ms   4 patience in ms: how long one in line counts as there without asking again; 0: it does not wait
-- Reply {1, fence} held now   {0, ms} not; in so many ms at the most it may be free, 0 when another one's turn has come
--
-- The fencing number rises with every acquisition; entering again keeps it. It is at least the
-- time, so that a server that has forgotten the last one still gives a higher one.
if #KEYS ~= 4 or #ARGV ~= 4 then return redis.error_reply('ERR enter takes 4 keys and 4 arguments') end
local owner, depth, lease, patience = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now_ms = math.floor(now_us / 1000)

for _, gone in ipairs(redis.call('ZRANGE', KEYS[4], '-inf', '(' .. integer(now_ms), 'BYSCORE')) do
  redis.call('ZREM', KEYS[3], gone)
  redis.call('ZREM', KEYS[4], gone)
end

local left_ms = redis.call('PTTL', KEYS[1])
local held = left_ms ~= -2
local mine = held and redis.call('HEXISTS', KEYS[1], owner) == 1
local first = redis.call('ZRANGE', KEYS[3], 0, 0)[1]
if mine or (not held and (not first or first == owner)) then
  local fence = mine and redis.call('GET', KEYS[2])
  if not fence then
    local last = tonumber(redis.call('GET', KEYS[2]) or '0') or 0
    fence = integer(math.max(last + 1, now_us))
    redis.call('SET', KEYS[2], fence)
  end
  -- A day longer than any lease: a clock that is set back less than that repeats no number.
  redis.call('PEXPIRE', KEYS[2], integer(lease + 86400000))
  redis.call('HSET', KEYS[1], owner, mine and integer(depth + 1) or '1')
  redis.call('PEXPIRE', KEYS[1], integer(math.max(left_ms, lease)))
  redis.call('ZREM', KEYS[3], owner)
  redis.call('ZREM', KEYS[4], owner)
  return { 1, fence }
end

if patience > 0 then
  redis.call('ZADD', KEYS[3], 'NX', integer(now_us), owner)
  redis.call('ZADD', KEYS[4], integer(now_ms + patience), owner)
  redis.call('PEXPIRE', KEYS[3], integer(patience))
  redis.call('PEXPIRE', KEYS[4], integer(patience))
end
return { 0, math.max(left_ms, 0) }
