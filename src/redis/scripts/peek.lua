-- What FAIL must know to compute a delay. Items of three: prefix, id and secret of a token. Each
-- result is {record, number of attempts, retry policy of the topic or ''}, or false for a token
-- that is not of a live lease.

local ARGS = 3

local function peek(at)
    local id = ARGV[at + 1]
    if not lease_of(ARGV[at], id, ARGV[at + 2]) then return false end
    return {call('HGET', REC, id), read_att(id).attempts, call('HGET', CFG, 'retry') or ''}
end

local results = {}
for at = 2, #ARGV, ARGS do
    results[#results + 1] = peek(at)
end
return reply(results)
