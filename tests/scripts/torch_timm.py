import timm
import torch

model = timm.create_model('vit_small_patch16_224', pretrained=False, num_classes=37).cuda()
opt = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
for _ in range(10):
    x, y = torch.randn(48, 3, 224, 224).cuda(), torch.randint(0, 37, (48,)).cuda()
    with torch.autocast('cuda', dtype=torch.float16):
        loss = torch.nn.functional.cross_entropy(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
