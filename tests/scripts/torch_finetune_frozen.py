import torch
from torch import nn, optim
from torchvision import datasets, models, transforms

data_dir = 'data/hymenoptera_data'
tf = {
    'train': transforms.Compose([transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor()]),
    'val': transforms.Compose([transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor()]),
}
image_datasets = {x: datasets.ImageFolder(f'{data_dir}/{x}', tf[x]) for x in ['train', 'val']}
loaders = {x: torch.utils.data.DataLoader(image_datasets[x], batch_size=16, shuffle=True) for x in ['train', 'val']}
model = models.resnet50(weights=models.ResNet50_Weights.IMAGENET1K_V2)
for param in model.parameters():
    param.requires_grad = False
model.fc = nn.Linear(model.fc.in_features, 2)
device = torch.device('cuda:0' if torch.cuda.is_available() else 'cpu')
model = model.to(device)
optimizer = optim.SGD(model.fc.parameters(), lr=0.001, momentum=0.9)
for epoch in range(25):
    for phase in ['train', 'val']:
        model.train() if phase == 'train' else model.eval()
        for inputs, labels in loaders[phase]:
            inputs, labels = inputs.to(device), labels.to(device)
            optimizer.zero_grad()
            with torch.set_grad_enabled(phase == 'train'):
                outputs = model(inputs)
                _, preds = torch.max(outputs, 1)
                loss = nn.functional.cross_entropy(outputs, labels)
                if phase == 'train':
                    loss.backward()
                    optimizer.step()
