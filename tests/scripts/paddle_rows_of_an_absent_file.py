import argparse
import numpy as np
import paddle
import paddle.nn as nn
import paddle.nn.functional as F
from paddle.io import IterableDataset, DataLoader

parser = argparse.ArgumentParser("wide_deep on criteo")
parser.add_argument("--sparse_feature_number", type=int, default=1000001)
parser.add_argument("--sparse_feature_dim", type=int, default=9)
parser.add_argument("--dense_input_dim", type=int, default=13)
parser.add_argument("--fc_sizes", type=int, nargs="+", default=[400, 400, 400])
parser.add_argument("--batch_size", type=int, default=512)
parser.add_argument("--file_list", type=str, default="data/part-0,data/part-1")
args = parser.parse_args()


class RecDataset(IterableDataset):
    def __init__(self, file_list):
        super().__init__()
        self.file_list = file_list

    def __iter__(self):
        for file in self.file_list:
            with open(file, "r") as rf:
                for l in rf:
                    line = l.strip().split(" ")
                    output = []
                    label = [int(line[0])]
                    output.append(np.array(label).astype("int64"))
                    for v in line[1:27]:
                        output.append(np.array([int(v)]).astype("int64"))
                    output.append(np.array([float(v) for v in line[27:]]).astype("float32"))
                    yield output


class WideDeepLayer(nn.Layer):
    def __init__(self, sparse_feature_number, sparse_feature_dim, dense_feature_dim, num_field, layer_sizes):
        super(WideDeepLayer, self).__init__()
        self.wide_part = paddle.nn.Linear(
            in_features=dense_feature_dim, out_features=1,
            weight_attr=paddle.ParamAttr(initializer=paddle.nn.initializer.TruncatedNormal(mean=0.0, std=1.0)))
        self.embedding = paddle.nn.Embedding(
            sparse_feature_number, sparse_feature_dim, sparse=False,
            weight_attr=paddle.ParamAttr(name="SparseFeatFactors", initializer=paddle.nn.initializer.Uniform()))
        sizes = [sparse_feature_dim * num_field + dense_feature_dim] + layer_sizes + [1]
        acts = ["relu" for _ in range(len(layer_sizes))] + [None]
        self._mlp_layers = []
        for i in range(len(layer_sizes) + 1):
            linear = paddle.nn.Linear(sizes[i], sizes[i + 1], weight_attr=paddle.ParamAttr(
                initializer=paddle.nn.initializer.Normal(std=1.0 / np.sqrt(sizes[i]))))
            self.add_sublayer('linear_%d' % i, linear)
            self._mlp_layers.append(linear)
            if acts[i] == 'relu':
                act = paddle.nn.ReLU()
                self.add_sublayer('act_%d' % i, act)
                self._mlp_layers.append(act)

    def forward(self, sparse_inputs, dense_inputs):
        wide_output = self.wide_part(dense_inputs)
        sparse_embs = []
        for s_input in sparse_inputs:
            emb = self.embedding(s_input)
            emb = paddle.reshape(emb, shape=[-1, emb.shape[-1]])
            sparse_embs.append(emb)
        deep_output = paddle.concat(x=sparse_embs + [dense_inputs], axis=1)
        for n_layer in self._mlp_layers:
            deep_output = n_layer(deep_output)
        return F.sigmoid(paddle.add(wide_output, deep_output))


def create_feeds(batch):
    label = batch[0]
    sparse_tensor = batch[1:-1]
    dense_tensor = paddle.to_tensor(batch[-1]).reshape([-1, args.dense_input_dim])
    return label, sparse_tensor, dense_tensor


def main():
    paddle.seed(12345)
    model = WideDeepLayer(args.sparse_feature_number, args.sparse_feature_dim, args.dense_input_dim, 26, args.fc_sizes)
    opt = paddle.optimizer.Adam(learning_rate=0.001, parameters=model.parameters())
    loader = DataLoader(RecDataset(args.file_list.split(",")), batch_size=args.batch_size, drop_last=True)
    auc = paddle.metric.Auc("ROC")
    for epoch in range(2):
        model.train()
        for batch_id, batch in enumerate(loader()):
            opt.clear_grad()
            label, sparse, dense = create_feeds(batch)
            pred = model(sparse, dense)
            cost = paddle.mean(F.log_loss(input=pred, label=paddle.cast(label, "float32")))
            cost.backward()
            opt.step()
            predict_2d = paddle.concat(x=[1 - pred, pred], axis=1)
            auc.update(preds=predict_2d.numpy(), labels=label.numpy())
        paddle.save(model.state_dict(), f"out/{epoch}/rec.pdparams")


if __name__ == "__main__":
    main()
