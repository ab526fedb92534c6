-- TOPIC. The result is false for an unknown topic; else the counts by state, the score of the first
-- ready timer or false, `cfg` and `st` as names and values, and the number of plans.

if not is_known then return reply({false}) end
if not is_swept then return again() end

local function count(key)
    return call('ZCARD', key) - 1 -- without the entry that means nothing
end

local ready = call('ZCOUNT', PEND, '-inf', now_text)
local plans = count(PLAN) + cfg.resting
local counts = {count(PEND) - ready + plans, ready, count(LEASE), count(BLOCK) - cfg.resting}
for state = DONE, SKIPPED do
    counts[#counts + 1] = count(ENDS[state])
end
local first = call('ZRANGEBYSCORE', PEND, '-inf', now_text, 'WITHSCORES', 'LIMIT', 0, 1)[2]
return reply({counts, first or false, call('HGETALL', CFG), call('HGETALL', ST), plans})
