import paddle
from paddle.vision import transforms as T
from paddle.vision.models import resnet18

BATCH_SIZE = 256
transform = T.Compose([T.RandomCrop(32, padding=4), T.RandomHorizontalFlip(), T.ToTensor(),
                       T.Normalize(mean=[0.5, 0.5, 0.5], std=[0.5, 0.5, 0.5])])
train_set = paddle.vision.datasets.Cifar10(mode='train', transform=transform)
train_loader = paddle.io.DataLoader(train_set, batch_size=BATCH_SIZE, shuffle=True, drop_last=True, num_workers=4)
net = resnet18(num_classes=10)
boundaries = [int(len(train_loader) * e) for e in (30, 60)]
lr = paddle.optimizer.lr.PiecewiseDecay(boundaries=boundaries, values=[0.1, 0.01, 0.001])
opt = paddle.optimizer.Momentum(learning_rate=lr, momentum=0.9, parameters=net.parameters(),
                                weight_decay=paddle.regularizer.L2Decay(1e-4))
criterion = paddle.nn.CrossEntropyLoss()
for epoch in range(90):
    net.train()
    for images, labels in train_loader:
        logits = net(images)
        loss = criterion(logits, labels)
        loss.backward()
        opt.step()
        lr.step()
        opt.clear_grad()
