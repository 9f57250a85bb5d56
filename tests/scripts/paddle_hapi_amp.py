import paddle
from paddle.static import InputSpec
from paddle.vision.transforms import Compose, Normalize, RandomHorizontalFlip, Resize, ToTensor

device = paddle.set_device('gpu')
net = paddle.vision.models.mobilenet_v1(num_classes=102, scale=0.5)
inputs = InputSpec([None, 3, 224, 224], 'float32', 'image')
labels = InputSpec([None, 1], 'int64', 'label')
model = paddle.Model(net, inputs, labels)
optim = paddle.optimizer.Adam(learning_rate=1e-3, parameters=model.parameters())
model.prepare(optim, paddle.nn.CrossEntropyLoss(), paddle.metric.Accuracy(topk=(1, 5)), amp_configs='O1')
transform = Compose([Resize(size=(224, 224)), RandomHorizontalFlip(), ToTensor(), Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])
train = paddle.vision.datasets.Flowers(mode='train', transform=transform)


class Log(paddle.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        print('epoch', epoch)


model.fit(train, batch_size=32, epochs=3, callbacks=[Log(), paddle.callbacks.EarlyStopping('loss')], drop_last=True, num_workers=2)
