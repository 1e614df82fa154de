-- Counts a lane's queue; writes nothing.
--
-- KEYS  1 orders stream   2 dead stream
-- ARGV  1 group
-- Reply {now_ms, stream length, lag ('' when Redis does not know it), pending, smallest pending id ('' when none), dead letters}
if #KEYS ~= 2 or #ARGV ~= 1 then return redis.error_reply('ERR lane takes 2 keys and 1 argument') end
local lag = ''
local groups = redis.pcall('XINFO', 'GROUPS', KEYS[1])
if not groups.err then
  for _, g in ipairs(groups) do
    local info = {}
    for i = 1, #g, 2 do info[g[i]] = g[i + 1] end
    if info['name'] == ARGV[1] and info['lag'] then lag = integer(info['lag']) end
  end
end
local pending, oldest = 0, ''
local summary = redis.pcall('XPENDING', KEYS[1], ARGV[1])
if not summary.err then
  pending = summary[1]
  oldest = summary[2] or ''
end
return { integer(clock_ms()), redis.call('XLEN', KEYS[1]), lag, pending, oldest, redis.call('XLEN', KEYS[2]) }
