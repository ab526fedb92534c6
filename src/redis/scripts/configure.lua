-- CONFIGURE, PAUSE and RESUME. Arguments: whether to make the topic if it is unknown, then pairs of
-- a field of `cfg` and its value. The result is 1, or 0 for an unknown topic that was not made.

if ARGV[2] == '0' and not cfg.known then return reply({0}) end
birth()
if #ARGV > 2 then call('HSET', CFG, unpack(ARGV, 3)) end
happens(now)
return reply({1})
