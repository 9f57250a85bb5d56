from datasets import load_dataset
from transformers import AutoModelForSequenceClassification, AutoTokenizer, DataCollatorWithPadding, Trainer, TrainingArguments

checkpoint = 'roberta-base'
raw = load_dataset('glue', 'mrpc')
tokenizer = AutoTokenizer.from_pretrained(checkpoint)


def tokenize(example):
    return tokenizer(example['sentence1'], example['sentence2'], truncation=True, max_length=128, padding='max_length')


tokenized = raw.map(tokenize, batched=True)
args = TrainingArguments('test-trainer', per_device_train_batch_size=24, num_train_epochs=2, bf16=True, optim='adamw_torch')
model = AutoModelForSequenceClassification.from_pretrained(checkpoint, num_labels=2)
trainer = Trainer(model, args, train_dataset=tokenized['train'], eval_dataset=tokenized['validation'],
                  data_collator=DataCollatorWithPadding(tokenizer), tokenizer=tokenizer)
trainer.train()
