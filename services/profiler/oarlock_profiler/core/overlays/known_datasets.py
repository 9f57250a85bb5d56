"""Public datasets by name: picture sizes, lengths and classes (torchvision.datasets, paddle.vision.datasets,
paddle.text…).

Sources: the datasets' own pages and the libraries' documentation. Sizes are height × width; None means that pictures
differ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from oarlock_profiler.core.interpreter.values import MISSING, Class, Context, Instance, Native, Unknown, Value
from oarlock_profiler.core.overlays.datasets import DATASET, length
from oarlock_profiler.core.overlays.images import Image
from oarlock_profiler.core.overlays.numpy_arrays import NdArray
from oarlock_profiler.core.overlays.numpy_creation import as_array
from oarlock_profiler.core.overlays.registry import native_class, register

LIBRARIES = ("torchvision", "paddle", "sklearn")


@dataclass(frozen=True, slots=True)
class Known:
    """``train``/``test``: samples (None when it depends on the folder).

    ``label``: ``class``, ``mask``, ``boxes``, ``number``…
    """

    size: tuple[int, int] | None
    mode: str
    train: int | None
    test: int | None
    classes: int
    label: str = "class"


KNOWN = {
    "MNIST": Known((28, 28), "L", 60000, 10000, 10),
    "FashionMNIST": Known((28, 28), "L", 60000, 10000, 10),
    "KMNIST": Known((28, 28), "L", 60000, 10000, 10),
    "QMNIST": Known((28, 28), "L", 60000, 60000, 10),
    "EMNIST": Known((28, 28), "L", 112800, 18800, 47),
    "USPS": Known((16, 16), "L", 7291, 2007, 10),
    "CIFAR10": Known((32, 32), "RGB", 50000, 10000, 10),
    "CIFAR100": Known((32, 32), "RGB", 50000, 10000, 100),
    "SVHN": Known((32, 32), "RGB", 73257, 26032, 10),
    "STL10": Known((96, 96), "RGB", 5000, 8000, 10),
    "ImageNet": Known(None, "RGB", 1281167, 50000, 1000),
    "ImageFolder": Known(None, "RGB", None, None, 0),
    "DatasetFolder": Known(None, "RGB", None, None, 0),
    "Flowers102": Known(None, "RGB", 1020, 6149, 102),
    "Flowers": Known(None, "RGB", 6149, 1020, 102),
    "OxfordIIITPet": Known(None, "RGB", 3680, 3669, 37),
    "Food101": Known(None, "RGB", 75750, 25250, 101),
    "StanfordCars": Known(None, "RGB", 8144, 8041, 196),
    "FGVCAircraft": Known(None, "RGB", 6667, 3333, 100),
    "Caltech101": Known(None, "RGB", 8677, 8677, 101),
    "Caltech256": Known(None, "RGB", 30607, 30607, 257),
    "DTD": Known(None, "RGB", 1880, 1880, 47),
    "EuroSAT": Known((64, 64), "RGB", 27000, 27000, 10),
    "GTSRB": Known(None, "RGB", 26640, 12630, 43),
    "Places365": Known((256, 256), "RGB", 1803460, 36500, 365),
    "CelebA": Known((218, 178), "RGB", 162770, 19962, 40, "attributes"),
    "VOCSegmentation": Known(None, "RGB", 1464, 1449, 21, "mask"),
    "VOC2012": Known(None, "RGB", 2913, 1449, 21, "mask"),
    "VOCDetection": Known(None, "RGB", 5717, 5823, 20, "boxes"),
    "Cityscapes": Known((1024, 2048), "RGB", 2975, 500, 19, "mask"),
    "CocoDetection": Known(None, "RGB", 118287, 5000, 80, "boxes"),
    "CocoCaptions": Known(None, "RGB", 118287, 5000, 80, "boxes"),
    "FakeData": Known((224, 224), "RGB", 1000, 1000, 10),
    "LSUN": Known(None, "RGB", None, None, 10),
    "PCAM": Known((96, 96), "RGB", 262144, 32768, 2),
    "Omniglot": Known((105, 105), "L", 19280, 13180, 964),
    "SBDataset": Known(None, "RGB", 8498, 2857, 21, "mask"),
    "Kinetics": Known(None, "RGB", None, None, 400, "video"),
}
_PADDLE_ALIASES = {"Cifar10": "CIFAR10", "Cifar100": "CIFAR100"}
_FOLDERS = {
    "imagenet": 1000,
    "ilsvrc": 1000,
    "imagenette": 10,
    "imagewoof": 10,
    "hymenoptera": 2,
    "cat": 2,
    "flower": 102,
    "tiny": 200,
    "food": 101,
    "pet": 37,
}
_ASSUMED_CLASSES = 10


class DatasetInstance(Instance):
    """A dataset whose contents are known by its name."""

    def __init__(self, cls: Class) -> None:
        super().__init__(cls)
        self.known: Known = cls.lookup("_known")
        self.training = True


_PLACES = ("root", "train", "transform", "target_transform", "download")
_SPLIT_PLACES = ("root", "split", "transform", "target_transform", "download")
_FOLDER_PLACES = ("root", "transform", "target_transform", "loader")
_PADDLE_PLACES = ("image_path", "label_path", "mode", "transform", "download", "backend")
_PADDLE_FILE_PLACES = ("data_file", "mode", "transform", "download", "backend")
_BY_SPLIT = frozenset({
    "SVHN", "STL10", "ImageNet", "Flowers102", "OxfordIIITPet", "Food101", "StanfordCars", "FGVCAircraft", "DTD",
    "GTSRB",
    "CelebA", "EMNIST", "Places365", "PCAM",
})  # fmt: skip


def _init(context: Context, self: DatasetInstance, *args: Value, **kwargs: Value) -> None:
    name = self.cls.name
    paddle = self.cls.qualname.startswith("paddle.")
    if name in ("ImageFolder", "DatasetFolder", "FakeData"):
        places: tuple[str, ...] = _FOLDER_PLACES
        if name == "FakeData":
            places = ("size", "image_size", "num_classes", "transform", "target_transform")
        if paddle:
            places = ("root", "loader", "extensions", "transform", "is_valid_file")
    elif paddle:
        places = _PADDLE_PLACES if name.endswith("MNIST") else _PADDLE_FILE_PLACES
    elif name in ("VOCSegmentation", "VOCDetection"):
        places = ("root", "year", "image_set", "download", "transform", "target_transform", "transforms")
    elif name in ("CocoDetection", "CocoCaptions"):
        places = ("root", "annFile", "transform", "target_transform", "transforms")
    else:
        places = _SPLIT_PLACES if name in _BY_SPLIT else _PLACES
    self.attrs.update({"transform": None, "target_transform": None})
    self.attrs.update(zip(places, args, strict=False))
    self.attrs.update(kwargs)
    split = self.attrs.get("split", self.attrs.get("mode", self.attrs.get("image_set", "train")))
    self.training = self.attrs.get("train", True) is not False and split in ("train", "trainval", "training", True)
    known = self.known
    if name == "FakeData":
        size = self.attrs.get("image_size", (3, 224, 224))
        classes = self.attrs.get("num_classes", 10)
        count = self.attrs.get("size", 1000)
        self.known = Known((size[1], size[2]), "RGB", count, count, classes if isinstance(classes, int) else 10)
    elif name == "EMNIST":
        sizes = {"letters": (124800, 20800, 26), "digits": (240000, 40000, 10), "mnist": (60000, 10000, 10)}
        train, test, classes = sizes.get(str(self.attrs.get("split")), (112800, 18800, 47))
        self.known = Known((28, 28), "L", train, test, classes)
        self.training = self.attrs.get("train", True) is not False
    elif name == "STL10" and "unlabeled" in str(split):
        self.known, self.training = replace(known, train=113000 if "train" in str(split) else 100000), True
    elif not known.classes:
        self.known = Known(None, "RGB", None, None, _folder_classes(context, self.attrs.get("root")))


def _folder_classes(context: Context, root: Value) -> int:
    text = root.lower() if isinstance(root, str) else ""
    classes = next((count for word, count in _FOLDERS.items() if word in text), _ASSUMED_CLASSES)
    context.findings.gap("number of classes", context.where, "it is the number of folders of the data", classes)
    return classes


def _getattr_names(context: Context, self: DatasetInstance, name: str) -> Value:
    known = self.known
    count = known.train if self.training else known.test
    if name == "classes":
        return [f"class{i}" for i in range(known.classes)]
    if name == "class_to_idx":
        return {f"class{i}": i for i in range(known.classes)}
    if name in ("targets", "labels", "_labels", "_label_list"):
        label = Unknown("a label of the data", context.where, hint="int", low=0, high=known.classes - 1)
        return (
            [label] * count
            if count is not None and count <= 2_000_000
            else Unknown("labels", context.where, hint="list", item=label)
        )
    if name in ("imgs", "samples"):
        pair = (Unknown("a file's name", context.where, hint="str"), 0)
        return Unknown("the folder's files", context.where, hint="list", item=pair)
    shape: tuple[int, ...] | None = None if known.size is None or count is None else (count, *known.size)
    if known.mode == "RGB" and shape is not None:
        shape = (*shape, 3)
    if known.mode == "L" and shape is not None and context.engine.framework == "torch":
        return context.engine.tensor(shape, "uint8", kind="other", device="cpu", op="dataset")
    return NdArray(shape, "uint8")


_LAZY = ("classes", "class_to_idx", "targets", "labels", "imgs", "samples", "data", "images")


def _getattr(context: Context, self: DatasetInstance, name: str) -> Value:
    if name in _LAZY:
        found = self.attrs[name] = _getattr_names(context, self, name)
        return found
    return Unknown(f"attribute {name} of a dataset", context.where)


def _len(context: Context, self: DatasetInstance) -> Value:
    count = self.known.train if self.training else self.known.test
    return (
        Unknown("the number of files is not in the script", context.where, hint="int", low=1)
        if count is None
        else count
    )


def _item(context: Context, self: DatasetInstance, index: Value) -> Value:
    known = self.known
    height, width = known.size or (None, None)
    image: Value = Image(height, width, known.mode)
    label = _label(context, self)
    joint = self.attrs.get("transforms")
    if joint is not None:
        return context.call(joint, (image, label))
    as_array_ = self.attrs.get("backend") == "cv2"
    if as_array_:
        image = NdArray(image.array_shape, "uint8")
    transform = self.attrs.get("transform")
    if transform is not None:
        image = context.call(transform, (image,))
    if as_array_ and isinstance(image, NdArray):
        image = NdArray(image.shape, "float32")
    own = self.attrs.get("target_transform")
    if own is not None:
        label = context.call(own, (label,))
    return image, label


def _label(context: Context, self: DatasetInstance) -> Value:
    known = self.known
    if known.label == "mask":
        height, width = known.size or (None, None)
        return Image(height, width, "L")
    if known.label == "boxes":
        context.findings.gap("boxes of a picture", context.where, "their number differs from picture to picture")
        return Unknown("annotations", context.where, hint="dict")
    if known.label == "attributes":
        return context.engine.tensor((40,), "int64", kind="other", device="cpu", op="label")
    if self.cls.qualname.startswith("paddle."):
        # Labels of MNIST and Flowers are arrays of one element, the others' are scalars.
        return NdArray((1,) if self.cls.name.endswith("MNIST") or self.cls.name == "Flowers" else (), "int64")
    return Unknown("a label of the data", context.where, hint="int", low=0, high=known.classes - 1)


def _register(name: str, known: Known, owner: str) -> None:
    cls = native_class(
        f"{owner}.{name}",
        bases=(DATASET,),
        make=DatasetInstance,
        _known=known,
        __init__=_init,
        __len__=_len,
        __getitem__=_item,
        __getattr__=_getattr,
    )
    register(f"{owner}.{name}", cls)
    if owner == "torchvision.datasets" and name in ("ImageFolder", "DatasetFolder"):
        register(f"torchvision.datasets.folder.{name}", cls)


# --- text and tables -------------------------------------------------------------------------------------------

_TABLES: dict[str, tuple[int, int, Any]] = {
    "UCIHousing": (404, 102, lambda: (NdArray((13,), "float32"), NdArray((1,), "float32"))),
    "Imdb": (25000, 25000, lambda: (NdArray((300,), "int64"), NdArray((1,), "int64"))),
    "Imikolov": (929589, 82430, lambda: tuple(NdArray((), "int64") for _ in range(5))),
    "Movielens": (900188, 100021, lambda: tuple(NdArray((1,), "int64") for _ in range(8))),
    "Conll05st": (5267, 5267, lambda: tuple(NdArray((64,), "int64") for _ in range(9))),
    "WMT14": (191155, 5957, lambda: tuple(NdArray((64,), "int64") for _ in range(3))),
    "WMT16": (29000, 1000, lambda: tuple(NdArray((64,), "int64") for _ in range(3))),
}


def _table_len(context: Context, self: Instance) -> Value:
    train, test = self.cls.lookup("_sizes")
    return train if self.attrs.get("mode", "train") == "train" else test


def _table_init(
    context: Context, self: Instance, data_file: Value = None, mode: Value = "train", *args: Value, **kwargs: Value
) -> None:
    self.attrs.update({"mode": mode, "word_idx": Unknown("the vocabulary", context.where, hint="dict")} | kwargs)


def _install() -> None:
    for name, known in KNOWN.items():
        _register(name, known, "torchvision.datasets")
    for name in ("MNIST", "FashionMNIST", "Flowers", "VOC2012", "ImageFolder", "DatasetFolder", "CIFAR10", "CIFAR100"):
        alias = {v: k for k, v in _PADDLE_ALIASES.items()}.get(name, name)
        _register(alias, KNOWN[name], "paddle.vision.datasets")
    for name, (train, test, make) in _TABLES.items():
        cls = native_class(
            f"paddle.text.{name}", bases=(DATASET,), __init__=_table_init, __len__=_table_len, _sizes=(train, test)
        )
        cls.namespace["__getitem__"] = Native(f"paddle.text.{name}.__getitem__", _table_getter(make))
        register(f"paddle.text.{name}", cls)
        register(f"paddle.text.datasets.{name}", cls)


def _table_getter(make: Any) -> Any:
    def getitem(context: Context, self: Instance, index: Value) -> Value:
        if self.cls.name in ("Imdb", "Conll05st", "WMT14", "WMT16"):
            context.findings.gap("length of a text", context.where, "texts differ in length", "64 or 300 tokens")
        return make()

    return getitem


_SKLEARN = {
    "load_iris": (150, 4, 3),
    "load_digits": (1797, 64, 10),
    "load_wine": (178, 13, 3),
    "load_breast_cancer": (569, 30, 2),
    "load_diabetes": (442, 10, 0),
    "fetch_california_housing": (20640, 8, 0),
    "load_boston": (506, 13, 0),
    "fetch_olivetti_faces": (400, 4096, 40),
}


class Bunch(Instance):
    """scikit-learn's answer: attributes ``data`` and ``target``, also by subscript."""


_BUNCH = native_class(
    "sklearn.utils.Bunch", make=Bunch, __getitem__=lambda context, self, key: context.getattr(self, key)
)


def _sklearn_loader(name: str) -> Any:
    rows, columns, classes = _SKLEARN[name]

    def load(context: Context, *args: Value, return_X_y: Value = False, **options: Value) -> Value:
        data, target = NdArray((rows, columns), "float64"), NdArray((rows,), "int64" if classes else "float64")
        if return_X_y is True:
            return data, target
        made = Bunch(_BUNCH)
        made.attrs.update(
            {
                "data": data,
                "target": target,
                "feature_names": [f"f{i}" for i in range(columns)],
                "target_names": [f"c{i}" for i in range(classes)],
                "images": NdArray((rows, 8, 8), "float64"),
            }
        )
        return made

    return load


def _make_classification(
    context: Context, n_samples: Value = 100, n_features: Value = 20, *args: Value, **options: Value
) -> Value:
    shape = (n_samples, n_features) if isinstance(n_samples, int) and isinstance(n_features, int) else None
    return NdArray(shape, "float64"), NdArray(None if shape is None else shape[:1], "int64")


def _make_points(
    context: Context, n_samples: Value = 100, *args: Value, n_features: Value = 2, **options: Value
) -> Value:
    shape = (n_samples, n_features) if isinstance(n_samples, int) and isinstance(n_features, int) else None
    return NdArray(shape, "float64"), NdArray(None if shape is None else shape[:1], "int64")


def _held_rows(rows: int, test_size: Value, train_size: Value) -> int:
    """How many of ``rows`` are held out; a quarter where nothing is said (scikit-learn's default)."""
    share = test_size if test_size is not None else (1 - train_size if isinstance(train_size, float) else 0.25)
    if isinstance(share, int):
        return share
    return -(-int(rows * share * 1000) // 1000) if isinstance(share, float) else rows // 4


def _table_parts(context: Context, table: Instance, test_size: Value, train_size: Value) -> list[Value]:
    """A table's training and held-out rows, by ``iloc``."""
    rows = context.call(context.getattr(table, "__len__"))
    pick = context.getattr(context.getattr(table, "iloc"), "__getitem__")
    if not isinstance(rows, int):
        return [context.call(pick, (slice(None),)) for _ in range(2)]
    cut = rows - _held_rows(rows, test_size, train_size)
    return [context.call(pick, (slice(None, cut),)), context.call(pick, (slice(cut, None),))]


def _train_test_split(
    context: Context, *arrays: Value, test_size: Value = None, train_size: Value = None, **options: Value
) -> Value:
    made: list[Value] = []
    for array in arrays:
        if context.is_open(array) or isinstance(array, Unknown):
            made += [context.call(context.getattr(array, "copy")), array] if isinstance(array, list) else [array, array]
            continue
        if isinstance(array, Instance) and array.cls.lookup("iloc") is not MISSING:
            made += _table_parts(context, array, test_size, train_size)
            continue
        known = as_array(context, array) if not isinstance(array, NdArray | list) else array
        if isinstance(known, NdArray) and not known.shape:
            made += [NdArray(None, known.dtype, row=known.row), NdArray(None, known.dtype, row=known.row)]
            continue
        rows = len(known) if isinstance(known, list) else (known.shape or (0,))[0]
        held = _held_rows(rows, test_size, train_size)
        if isinstance(known, list):
            made += [known[: rows - held], known[rows - held :]]
            continue
        rest = (known.shape or (0,))[1:]
        made += [NdArray((rows - held, *rest), known.dtype), NdArray((held, *rest), known.dtype)]
    return made


def _measured(context: Context, name: Value = "") -> Value:
    """A metric of what was predicted: a number that no training depends on."""
    return Native(f"sklearn.metrics.{name}", lambda inner, *_a, **_k: inner.derived("a metric", "float"))


def _in_order(context: Context, *arrays: Value, **options: Value) -> Value:
    """``sklearn.utils.shuffle``: the same rows."""
    return arrays[0] if len(arrays) == 1 else list(arrays)


def _folds_init(context: Context, self: Instance, n_splits: Value = 5, *args: Value, **options: Value) -> None:
    self.attrs["n_splits"] = n_splits if isinstance(n_splits, int) else 5


def _folds(context: Context, self: Instance, X: Value, *args: Value, **options: Value) -> Value:
    """Index arrays of the training and the held-out rows, once per fold."""
    rows, count = length(context, X), self.attrs["n_splits"]
    if rows is None:
        return [(NdArray(None, "int64"), NdArray(None, "int64"))] * count
    held = rows // count
    return [(NdArray((rows - held,), "int64"), NdArray((held,), "int64"))] * count


def _fold_count(context: Context, self: Instance, *args: Value) -> Value:
    return self.attrs["n_splits"]


def _install_sklearn() -> None:
    for name in ("KFold", "StratifiedKFold", "GroupKFold", "ShuffleSplit", "StratifiedShuffleSplit"):
        folds = native_class(
            f"sklearn.model_selection.{name}", __init__=_folds_init, split=_folds, get_n_splits=_fold_count
        )
        register(f"sklearn.model_selection.{name}", folds)
    for name in _SKLEARN:
        register(f"sklearn.datasets.{name}", Native(f"sklearn.datasets.{name}", _sklearn_loader(name)))
    register(
        "sklearn.datasets.make_classification", Native("sklearn.datasets.make_classification", _make_classification)
    )
    register("sklearn.datasets.make_regression", Native("sklearn.datasets.make_regression", _make_classification))
    for name in ("make_moons", "make_circles", "make_blobs"):
        register(f"sklearn.datasets.{name}", Native(f"sklearn.datasets.{name}", _make_points))
    register(
        "sklearn.model_selection.train_test_split",
        Native("sklearn.model_selection.train_test_split", _train_test_split),
    )
    register("sklearn.metrics.__getattr__", Native("sklearn.metrics.__getattr__", _measured))
    register("sklearn.utils.shuffle", Native("sklearn.utils.shuffle", _in_order))


_install()
_install_sklearn()
