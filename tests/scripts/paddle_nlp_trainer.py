from dataclasses import dataclass, field

import paddle
from paddlenlp.data import DataCollatorWithPadding
from paddlenlp.datasets import load_dataset
from paddlenlp.trainer import PdArgumentParser, Trainer, TrainingArguments
from paddlenlp.transformers import AutoModelForSequenceClassification, AutoTokenizer


@dataclass
class DataArguments:
    dataset: str = field(default='lcqmc')
    max_seq_length: int = field(default=64)


def main():
    parser = PdArgumentParser((DataArguments, TrainingArguments))
    data_args, training_args = parser.parse_args_into_dataclasses()
    train_ds, dev_ds = load_dataset(data_args.dataset, splits=['train', 'dev'])
    model = AutoModelForSequenceClassification.from_pretrained('bert-base-chinese', num_classes=2)
    tokenizer = AutoTokenizer.from_pretrained('bert-base-chinese')

    def trans(ex):
        out = tokenizer(ex['query'], ex['title'], max_length=data_args.max_seq_length, padding='max_length')
        return {'input_ids': out['input_ids'], 'token_type_ids': out['token_type_ids'], 'labels': ex['label']}

    trainer = Trainer(model=model, criterion=paddle.nn.CrossEntropyLoss(), args=training_args, data_collator=DataCollatorWithPadding(tokenizer),
                      train_dataset=train_ds.map(trans), eval_dataset=dev_ds.map(trans), tokenizer=tokenizer)
    trainer.train()
    trainer.save_model()


if __name__ == '__main__':
    main()
