"""Corpora and settings on which Megalith's sample order is compared with Megatron-Core's."""

import random


def corpora():
    """Name -> documents, each a list of sequences."""

    def document(generator, length):
        return [[generator.randrange(1, 60000) for _ in range(length)]]

    result = {}
    generator = random.Random(1)
    result["one_document"] = [document(generator, 1000)]
    result["ordinary"] = [document(generator, generator.randrange(5, 120)) for _ in range(60)]
    # A document without a sequence, and sequences without a token, among others.
    result["empty_documents"] = [
        [] if i % 5 == 0 else ([[]] if i % 5 == 1 else document(generator, generator.randrange(1, 40))) for i in range(80)
    ]
    result["one_token_documents"] = [document(generator, 1) for _ in range(150)]
    result["many_sequences"] = [
        [document(generator, generator.randrange(1, 30))[0] for _ in range(generator.randrange(1, 5))] for _ in range(40)
    ]
    result["small"] = [document(generator, generator.randrange(10, 30)) for _ in range(12)]
    return result


def cases():
    """Settings; {P} stands for the folder of the corpora."""

    def case(name, data_path=None, split="969,30,1", seq_length=16, seed=1234, samples=(40, 0, 0), **paths):
        return dict(name=name, data_path=data_path, split=split, seq_length=seq_length, seed=seed,
                    samples=list(samples), **paths)

    result = [
        case("one document, less than an epoch", ["{P}/one_document"], "1,0,0"),
        case("one document, just under two epochs", ["{P}/one_document"], "1,0,0", samples=(124, 0, 0)),
        case("ordinary, three sets", ["{P}/ordinary"], "80,15,5", samples=(50, 10, 3)),
        case("ordinary, split of two weights", ["{P}/ordinary"], "9,1", samples=(50, 10, 0)),
        case("ordinary, seed 0", ["{P}/ordinary"], "1,0,0", seed=0),
        case("ordinary, largest seed", ["{P}/ordinary"], "1,0,0", seed=4294967295),
        case("empty documents", ["{P}/empty_documents"], "1,0,0", samples=(30, 0, 0)),
        case("empty documents, several epochs", ["{P}/empty_documents"], "70,30,0", samples=(400, 60, 0)),
        case("documents of one token", ["{P}/one_token_documents"], "1,0,0", seq_length=7, samples=(50, 0, 0)),
        case("several sequences a document", ["{P}/many_sequences"], "60,30,10", seq_length=9, samples=(200, 50, 10)),
        case("longer than most documents", ["{P}/ordinary"], "1,0,0", seq_length=400, samples=(30, 0, 0)),
        case("sequence of one", ["{P}/small"], "1,0,0", seq_length=1, samples=(500, 0, 0)),
        case("weight on a single dataset", ["1.0", "{P}/ordinary"], "90,10,0", samples=(300, 20, 0)),
        case("blend", ["0.3", "{P}/ordinary", "0.7", "{P}/many_sequences"], "90,10,0", samples=(500, 30, 0)),
        case("blend, weights of any sum", ["3", "{P}/ordinary", "1", "{P}/small", "2.5", "{P}/one_document"], "1,0,0",
             samples=(700, 0, 0)),
        case("blend, equal weights", ["1", "{P}/ordinary", "1", "{P}/small", "1", "{P}/one_document"], "1,0,0",
             samples=(99, 0, 0)),
        case("blend, extreme weights", ["0.9999", "{P}/ordinary", "0.0001", "{P}/small"], "1,0,0", samples=(3000, 0, 0)),
        case("blend, same dataset twice", ["0.5", "{P}/ordinary", "0.5", "{P}/ordinary"], "1,0,0", samples=(64, 0, 0)),
        case("blend, ten datasets",
             [value for i in range(10) for value in (str(0.1 * (i + 1) / 3), "{P}/" + ("ordinary", "small")[i % 2])],
             "1,0,0", samples=(400, 0, 0)),
        case("blend without weights", ["{P}/ordinary", "{P}/small", "{P}/many_sequences"], "80,20,0", samples=(500, 5, 0)),
        case("paths for each set", split=None, samples=(120, 9, 8), train_data_path=["2", "{P}/ordinary", "1", "{P}/small"],
             valid_data_path=["{P}/one_document"], test_data_path=["{P}/many_sequences"]),
        case("one weighted path for a set", split=None, samples=(300, 0, 0), train_data_path=["7", "{P}/ordinary"]),
    ]
    # Around the threshold of 80 % for the last epoch, in steps of one sample over two epochs.
    result += [case(f"last epoch, {count} samples", ["{P}/small"], "1,0,0", seq_length=8, samples=(count, 0, 0))
               for count in range(25, 95, 3)]
    return result
