"""Lists, dicts, sets, slices and the collections module."""

import collections
import copy
import heapq
import bisect
import itertools
import operator
import functools
import array
import types

r = []
l = list(range(10))
r += [l[2:8:3], l[::-2], l[-3:], l[:-7], l[100:], l[slice(1, 4)]]
l[2:5] = ["a"]
r.append(list(l))
l[::3] = [0] * len(l[::3])
r.append(list(l))
del l[1:3]
r.append(list(l))
l.insert(1, "ins")
l.extend("xy")
l += (1,)
l *= 2
r.append(list(l))
l = [3, 1, 2]
l.sort(key=lambda v: -v)
r.append(l)
l.reverse()
r.append([l, l.index(2), l.count(1), l.copy() is l, l == [1, 2, 3], [1, 2] < [1, 3], [1] + [2]])
d = {"a": 1, **{"b": 2}, "c": 3}
d |= {"d": 4}
r.append([d | {"a": 9}, list(d), d.get("z"), d.get("z", 0), d.setdefault("e", 5), d.pop("a"), d.pop("zz", None), list(d.items())])
r.append([dict(zip("ab", [1, 2])), dict([("x", 1)], y=2), dict.fromkeys("ab", 0), {k: v for k, v in d.items() if v > 2}])
d.update(a=1, b=3)
r.append([d, "a" in d, len(d), list(reversed(d)), {1: "int", 1.0: "float", True: "bool"}, d.keys() & {"a", "zz"}, max(d, key=d.get)])
s = {1, 2, 3}
r.append([s | {4}, s & {1}, s - {1}, s ^ {3, 4}, s <= {1, 2, 3, 4}, s.isdisjoint({9}), sorted(s.union([7], [8])), frozenset(s) == s])
s.discard(9)
s.add(5)
s -= {1}
r.append(sorted(s))
t = (1, 2, 3)
r.append([t + (4,), t * 2, t.index(2), t[::-1], (1,) < (1, 0), hash(t) == hash((1, 2, 3)), ()])
c = collections.Counter("abracadabra")
r.append([c.most_common(2), c["z"], sum(c.values()), c - collections.Counter("aaa"), sorted(c.elements())[:3], dict(c)])
dd = collections.defaultdict(list)
for k, v in [("a", 1), ("b", 2), ("a", 3)]:
    dd[k].append(v)
r.append([dict(dd), dd["new"], sorted(dd)])
nested = collections.defaultdict(lambda: collections.defaultdict(int))
nested["x"]["y"] += 1
r.append({k: dict(v) for k, v in nested.items()})
od = collections.OrderedDict(a=1, b=2, c=3)
od.move_to_end("a")
r.append([list(od), od.popitem(last=False), od == {"c": 3, "a": 1}])
dq = collections.deque([1, 2, 3], maxlen=3)
dq.append(4)
dq.appendleft(0)
dq.rotate(1)
r.append([list(dq), dq.maxlen, dq[0]])
cm = collections.ChainMap({"a": 1}, {"a": 2, "b": 3})
r.append([cm["a"], cm["b"], dict(cm), len(cm)])
P = collections.namedtuple("P", "x y z", defaults=[0])
r.append([P(1, 2), P(1, y=5)._replace(z=9), P._make([1, 2, 3]), P(1, 2) == (1, 2, 0), P(3, 4).x])
r.append([list(itertools.chain([1], "ab")), list(itertools.islice(itertools.count(5, 2), 3)), list(itertools.accumulate([1, 2, 3], operator.mul))])
r.append([list(itertools.product("ab", [1, 2])), list(itertools.combinations("abc", 2)), list(itertools.permutations("ab")), list(itertools.zip_longest("ab", "c", fillvalue="-"))])
r.append([[(k, list(g)) for k, g in itertools.groupby("aabbc")], list(itertools.starmap(pow, [(2, 3), (3, 2)])), list(itertools.takewhile(lambda v: v < 3, range(9)))])
r.append([list(itertools.dropwhile(lambda v: v < 3, range(5))), list(itertools.compress("abc", [1, 0, 1])), list(itertools.repeat("x", 2)), list(itertools.pairwise("abcd")), list(itertools.filterfalse(bool, [0, 1]))])
a, b = itertools.tee([1, 2])
r.append([list(a), list(b), list(itertools.islice(itertools.cycle("ab"), 5)), list(itertools.chain.from_iterable([[1], [2, 3]]))])
h = [5, 1, 4]
heapq.heapify(h)
heapq.heappush(h, 0)
r.append([heapq.heappop(h), heapq.nlargest(2, h), heapq.nsmallest(1, h), bisect.bisect_left([1, 3, 5], 3), bisect.bisect([1, 3, 5], 3)])
r.append([functools.reduce(lambda a, b: a + b, [1, 2, 3], 10), functools.partial(int, base=2)("101"), operator.itemgetter(1, 2)("abc"), operator.attrgetter("real")(3), operator.methodcaller("upper")("a")])


@functools.lru_cache(maxsize=None)
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


r.append([fib(50), fib.cache_info().currsize])
deep = {"a": [1, {"b": 2}]}
shallow, full = copy.copy(deep), copy.deepcopy(deep)
deep["a"][1]["b"] = 9
r.append([shallow["a"][1]["b"], full["a"][1]["b"]])
r.append([list(map(lambda a, b: a + b, [1, 2], [3, 4])), list(filter(None, [0, 1, "", "a"])), list(enumerate("ab", 1)), list(zip(*[(1, 2), (3, 4)])), sorted({"b": 1, "a": 2})])
r.append([sum([[1], [2]], []), any([]), all([]), min(3, 1, 2), max([1, 5], default=0), max([], default=-1), abs(-3), divmod(7, 2), pow(2, 5, 7), round(2.675, 2), round(5, -1)])
r.append([list(reversed([1, 2])), list(range(10, 0, -3)), len(range(0, 100, 7)), range(5)[1:3], 3 in range(5), range(3) == range(0, 3), range(10).index(4)])
ns = types.SimpleNamespace(a=1, b=2)
ns.c = 3
r.append([vars(ns), ns == types.SimpleNamespace(a=1, b=2, c=3), repr(ns)])
r.append(dict(types.MappingProxyType({"k": 1})))
matrix = [[1, 2, 3], [4, 5, 6]]
r.append([[row[i] for row in matrix] for i in range(3)])
r.append([[v for row in matrix for v in row if v % 2], {v: k for k, v in enumerate("ab")}, {v % 3 for v in range(9)}])
r.append([x for x in (y * 2 for y in range(5)) if x > 2 if x < 8])
r.append(isinstance([], collections.abc.Sequence) and isinstance({}, collections.abc.Mapping) and not isinstance({}, collections.abc.Sequence))
r.append([bytes([1, 2]), bytearray(b"ab") + b"c", b"a,b".split(b","), list(b"ab"), b"ab".hex(), bytes.fromhex("0aff"), int.from_bytes(b"\x01\x00", "big"), (258).to_bytes(2, "little")])
r.append(sorted([("b", 1), ("a", 2), ("a", 1)], key=lambda p: (p[0], -p[1])))
