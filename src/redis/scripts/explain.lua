-- EXPLAIN. Argument: id. The result is false if there is no such timer; or the timer as of GET,
-- whether the topic is paused (1 or 0), the lost leases that make a timer dead, how long an ended
-- timer is kept in ms (-1: until it is purged), how many unfinished occurrences of its plan run and
-- are blocked, how many timers of the topic are leased, and how many are ready before this one.

local function explain(id)
    local r, state, score = look(id)
    if not r then return reply({false}) end
    local at = string.find(id, '@', 1, true)
    local plan = at and string.sub(id, 1, at - 1) or id
    local timer = {id, state, score, r.bytes, call('HGET', ATT, id),
                   state == LEASED and call('HGET', TOK, r.prefix .. id)}
    return reply({timer, cfg.paused and 1 or 0, cfg.crashes, retention_of(state),
                  count_occurrences(plan, 'r'), count_occurrences(plan, 'b'),
                  call('ZCARD', LEASE) - 1, call('ZRANK', PEND, r.prefix .. id) or 0})
end

if not is_known then return reply({false}) end
return explain(ARGV[2])
