"""pandas and scikit-learn as the reader follows them: what the bundle's table says, and what stays unknown without it."""

import pytest
from tests.profiler.interpreter.bench import Ran, run

from oarlock_profiler.core.interpreter.values import Unknown

CSV = "user,name,label,score\n1,ann,0,0.5\n7,bob,1,1.5\n3,ann,0,2\n"


def read(source: str, **files: str) -> Ran:
    ran = run(f"import pandas as pd\nimport numpy as np\n{source}", files={"train.csv": CSV, **files})
    assert ran.stopped is None
    assert ran.machine.internal_errors == []
    return ran


def test_a_table_of_the_bundle_tells_its_columns_rows_and_values() -> None:
    ran = read(
        "df = pd.read_csv('train.csv')\n"
        "rows, columns, shape = len(df), list(df.columns), df.shape\n"
        "users, classes = df['user'].max() + 1, df.label.nunique()\n"
        "features = df.drop(columns=['label', 'name']).values.shape\n"
        "kinds = [str(df[c].dtype) for c in df]\n"
        "names = df['name'].tolist()\n"
        "seen = [row['user'] for _, row in df.iterrows()]\n"
        "coded = pd.get_dummies(df, columns=['name']).shape\n"
        "df['double'] = df['user'] * 2.0\n"
        "made = df.double.values.dtype.name\n"
    )
    assert (ran["rows"], ran["columns"], ran["shape"]) == (3, ["user", "name", "label", "score"], (3, 4))
    assert (ran["users"], ran["classes"], ran["features"]) == (8, 2, (3, 2))
    assert ran["kinds"] == ["int64", "object", "int64", "float64"]
    assert (ran["names"], ran["seen"]) == (["ann", "bob", "ann"], [1, 7, 3])
    assert (ran["coded"], ran["made"]) == ((3, 5), "float64")


def test_of_an_absent_table_only_the_rows_are_unknown_where_columns_are_named() -> None:
    ran = read(
        "df = pd.read_csv('absent.csv')\n"
        "features = df[['a', 'b', 'c']].values.astype('float32')\n"
        "rows, width, kind = features.shape[0], features.shape[1], features.dtype.name\n"
        "everything = df.drop(columns=['label']).shape[1]\n"
        "classes = df['label'].nunique()\n"
    )
    assert (ran["width"], ran["kind"]) == (3, "float32")
    assert all(isinstance(ran[name], Unknown) for name in ("rows", "everything", "classes"))
    assert any("absent.csv" in gap and "not in the bundle" in gap for gap in ran.gaps)


def test_names_given_by_the_call_are_the_columns() -> None:
    ran = read("df = pd.read_csv('absent.data', names=['x', 'y', 'z'], nrows=100)\nwidth = df.values.shape[1]\n")
    assert ran["width"] == 3


@pytest.mark.parametrize(
    ("call", "count", "last"),
    [
        ("pd.date_range('2022-01-01', periods=2000, freq='15T')", 2000, (2022, 1, 21, 19, 45)),
        ("pd.date_range('2024-02-27', '2024-03-01')", 4, (2024, 3, 1, 0, 0)),
        ("pd.date_range('2020-01-15', periods=14, freq='MS')", 14, (2021, 2, 1, 0, 0)),
    ],
)
def test_dates_are_counted(call: str, count: int, last: tuple[int, ...]) -> None:
    ran = read(f"d = {call}\nn = len(d)\ne = d[-1]\nlast = (e.year, e.month, e.day, e.hour, e.minute)\nup = d[0] < e\n")
    assert (ran["n"], ran["last"], ran["up"]) == (count, last, True)


def test_rows_are_chosen_by_place_label_and_condition() -> None:
    ran = read(
        "f = pd.DataFrame(np.zeros((96, 2), dtype='float32'), index=pd.date_range('2022-01-01', periods=96, freq='H'),\n"
        "                 columns=['a', 'b'])\n"
        "place, label = f.iloc[10:20, :1].shape, f.loc['2022-01-02':'2022-01-03'].shape\n"
        "some = f[f['a'] > 0].values.shape\n"
        "again = f.reset_index(drop=True).reindex(pd.RangeIndex(0, 96, 2)).shape\n"
        "both = pd.concat([f, f]).shape, pd.concat([f, f.rename(columns={'a': 'c', 'b': 'd'})], axis=1).shape\n"
        "freq = pd.infer_freq(f.asfreq('H').index)\n"
    )
    assert (ran["place"], ran["label"], ran["again"]) == ((10, 1), (25, 2), (48, 2))
    assert ran["some"][1] == 2
    assert isinstance(ran["some"][0], Unknown)
    assert (ran["both"], ran["freq"]) == (((192, 2), (96, 4)), "H")


def test_scikit_learn_keeps_rows_and_counts_classes() -> None:
    ran = read(
        "from sklearn.model_selection import train_test_split\n"
        "from sklearn.preprocessing import LabelEncoder, OneHotEncoder, StandardScaler\n"
        "from sklearn.metrics import accuracy_score\n"
        "df = pd.read_csv('train.csv')\n"
        "train, held = train_test_split(df, test_size=1)\n"
        "parts = train.shape, held.shape\n"
        "scaled = StandardScaler().fit_transform(df[['user', 'score']]).shape\n"
        "encoder = LabelEncoder()\n"
        "codes = encoder.fit_transform(df['name']).dtype.name\n"
        "classes = len(encoder.classes_)\n"
        "hot = OneHotEncoder().fit_transform(df[['name', 'label']]).shape\n"
        "score = accuracy_score(df['label'], codes)\n"
    )
    assert (ran["parts"], ran["scaled"]) == (((2, 4), (1, 4)), (3, 2))
    assert (ran["codes"], ran["classes"], ran["hot"]) == ("int64", 2, (3, 4))
    assert isinstance(ran["score"], Unknown)


def test_a_format_is_looked_up_on_the_type() -> None:
    ran = read(
        "class Proxy:\n"
        "    def __getattr__(self, name):\n"
        "        raise AttributeError(name)\n"
        "    def __str__(self):\n"
        "        return 'proxy'\n"
        "text = f'{Proxy()}'\n"
    )
    assert ran["text"] == "proxy"


@pytest.mark.parametrize(
    ("call", "shape"),
    [
        ("np.vstack([np.zeros(3), np.zeros(3)])", (2, 3)),
        ("np.vstack(tup=[np.zeros((2, 3)), np.zeros((1, 3))])", (3, 3)),
        ("np.hstack([np.zeros((2, 3)), np.zeros((2, 1))])", (2, 4)),
        ("np.hstack([np.zeros(3), np.zeros(2)])", (5,)),
        ("np.dstack([np.zeros((2, 3)), np.zeros((2, 3))])", (2, 3, 2)),
        ("np.column_stack([np.zeros(4), np.zeros((4, 2))])", (4, 3)),
        ("np.append(np.zeros((2, 3)), np.zeros(2))", (8,)),
        ("np.append(np.zeros((2, 3)), np.zeros((1, 3)), axis=0)", (3, 3)),
        ("np.concatenate([np.zeros((2, 3)), np.zeros((2, 3))], axis=None)", (12,)),
    ],
)
def test_arrays_are_joined_as_numpy_joins_them(call: str, shape: tuple[int, ...]) -> None:
    assert read(f"shape = ({call}).shape\n")["shape"] == shape


@pytest.mark.parametrize(
    ("kind", "above", "answer"),
    [("'float32'", "np.floating", True), ("'float32'", "np.integer", False), ("'uint8'", "np.integer", True),
     ("int", "np.integer", True), ("type(None)", "np.integer", False), ("'float64'", "np.float64", True),
     ("'datetime64[ns]'", "np.datetime64", True), ("'float32'", "np.float64", False)],
)  # fmt: skip
def test_dtypes_have_their_place_in_numpys_tree(kind: str, above: str, answer: bool) -> None:
    assert read(f"found = np.issubdtype({kind}, {above})\n")["found"] is answer


def test_a_large_or_broken_table_is_bounded() -> None:
    rows = "\n".join(f"{i},{i % 50}" for i in range(20_000))
    ran = read(
        "big = pd.read_csv('big.csv')\nshape, kinds = big.shape, big['b'].nunique()\n"
        "odd = pd.read_csv('odd.csv')\nwide = odd.shape\n",
        **{"big.csv": f"a,b\n{rows}\n", "odd.csv": "a,b\n1\n2,3,4\n,x\n"},
    )
    assert (ran["shape"], ran["kinds"], ran["wide"]) == ((20_000, 2), 50, (3, 2))
