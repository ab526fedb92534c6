-- GET. Items of one: id. Each result is {id, state, score, record, `att`, `tok`}, or false.

local function get(id)
    local r, state, score = look(id)
    if not r then return false end
    return {id, state, score, r.bytes, call('HGET', ATT, id),
            state == LEASED and call('HGET', TOK, r.prefix .. id)}
end

local results = {}
for at = 2, #ARGV do
    results[#results + 1] = is_known and get(ARGV[at])
end
return reply(results)
