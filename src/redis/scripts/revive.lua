-- REVIVE. Arguments: id (empty: all of the topic), the latest time of death of those to revive
-- (empty: now), the most to revive. The result is their number and that time.

local function revive(id, r)
    local a = read_att(id)
    take_out(id, r, DEAD)
    a.state, a.finished, a.attempts, a.crashes, a.reason = 0, 0, 0, 0, ''
    write_att(id, a)
    if r.expires > 0 then r.expiry = now + r.expires end
    if r.kind == OCCURRENCE then call('ZADD', OCC, 0, 'r' .. id) end
    move(id, r, now)
end

local function revive_one(id)
    local r, state = look(id)
    if not r or state ~= DEAD then return 0 end
    revive(id, r)
    return 1
end

local function revive_all(until_text, limit)
    local members = call('ZRANGEBYSCORE', ENDS[DEAD], '-inf', until_text, 'LIMIT', 0, limit)
    for _, member in ipairs(members) do
        local id = string.sub(member, 9)
        revive(id, read_record(call('HGET', REC, id)))
    end
    return #members
end

if not is_known then return reply({0, now}) end
if not is_swept then return again() end
local until_text = ARGV[3] == '' and now_text or ARGV[3]
if ARGV[2] ~= '' then return reply({revive_one(ARGV[2]), now}) end
return reply({revive_all(until_text, ARGV[4]), tonumber(until_text)})
