import torch
import torchvision

model = torchvision.models.efficientnet_b0(num_classes=120).cuda()
opt = torch.optim.RMSprop(model.parameters(), lr=0.01, alpha=0.9, momentum=0.9, weight_decay=1e-5)
scaler = torch.cuda.amp.GradScaler()
for i in range(100):
    x = torch.randn(96, 3, 224, 224, device='cuda')
    y = torch.randint(0, 120, (96,), device='cuda')
    opt.zero_grad(set_to_none=True)
    with torch.cuda.amp.autocast():
        loss = torch.nn.functional.cross_entropy(model(x), y, label_smoothing=0.1)
    scaler.scale(loss).backward()
    scaler.unscale_(opt)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(opt)
    scaler.update()
