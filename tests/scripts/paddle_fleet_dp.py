import paddle
import paddle.distributed as dist
from paddle.distributed import fleet
from paddle.vision import transforms
from paddle.vision.datasets import Cifar100


def main():
    strategy = fleet.DistributedStrategy()
    fleet.init(is_collective=True, strategy=strategy)
    model = paddle.vision.models.mobilenet_v2(num_classes=100)
    sched = paddle.optimizer.lr.CosineAnnealingDecay(0.05 * dist.get_world_size(), T_max=200)
    opt = paddle.optimizer.Momentum(learning_rate=sched, momentum=0.9, parameters=model.parameters(), weight_decay=4e-5)
    opt = fleet.distributed_optimizer(opt)
    model = fleet.distributed_model(model)
    tf = transforms.Compose([transforms.Resize(224), transforms.ToTensor()])
    data = Cifar100(mode='train', transform=tf)
    sampler = paddle.io.DistributedBatchSampler(data, batch_size=64, shuffle=True, drop_last=True)
    loader = paddle.io.DataLoader(data, batch_sampler=sampler, num_workers=4)
    for epoch in range(200):
        sampler.set_epoch(epoch)
        model.train()
        for img, label in loader:
            out = model(img)
            loss = paddle.nn.functional.cross_entropy(input=out, label=label)
            avg = paddle.mean(x=loss)
            avg.backward()
            opt.step()
            opt.clear_grad()
        sched.step()
        if dist.get_rank() == 0:
            paddle.save(model.state_dict(), 'model.pdparams')


if __name__ == '__main__':
    main()
