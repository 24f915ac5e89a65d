/** One line of Prometheus' text format. */
type Sample = { name: string; labels: Record<string, string>; value: number }

/** Metrics with their kinds (`counter`, `gauge`, `histogram`), and every sample. */
export type Exposition = {
  kinds: Map<string, string>
  samples: Sample[]
  /** The one sample of that name with these labels and no others; undefined when there is none. */
  valueOf: (name: string, labels?: Record<string, string>) => number | undefined
  /** Of all samples of that name that have these labels. */
  sumOf: (name: string, labels?: Record<string, string>) => number
}

const SAMPLE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/
/** What is not a number in JavaScript; the last is what prom-client writes for a mean of nothing. */
const SPECIAL: Record<string, number> = { '+Inf': Infinity, '-Inf': -Infinity, Nan: NaN }

const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"(?:,|$)/g

/** Throws where a line is none of the format. */
export function parseExposition(text: string): Exposition {
  const kinds = new Map<string, string>()
  const samples: Sample[] = []
  for (const line of text.split('\n')) {
    const [, metric, kind] = /^# TYPE (\S+) (counter|gauge|histogram|summary)$/.exec(line) ?? []
    if (metric !== undefined && kind !== undefined) {
      if (kinds.has(metric)) throw new Error(`${metric} is there twice`)
      kinds.set(metric, kind)
    } else if (line !== '' && !line.startsWith('# HELP ')) {
      samples.push(parseSample(line))
    }
  }
  const found = (name: string, labels: Record<string, string>): Sample[] =>
    samples.filter(
      (sample) =>
        sample.name === name &&
        Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
    )
  return {
    kinds,
    samples,
    valueOf: (name, labels = {}) =>
      found(name, labels).find((sample) => Object.keys(sample.labels).length === Object.keys(labels).length)
        ?.value,
    sumOf: (name, labels = {}) => found(name, labels).reduce((sum, { value }) => sum + value, 0),
  }
}

function parseSample(line: string): Sample {
  const [, name, labels = '', number = ''] = SAMPLE.exec(line) ?? []
  const value = SPECIAL[number] ?? Number(number)
  if (name === undefined || (Number.isNaN(value) && !(number in SPECIAL)))
    throw new Error(`not a sample: ${line}`)
  const pairs = [...labels.matchAll(LABEL)]
  if (pairs.map(([pair]) => pair).join('') !== labels) throw new Error(`not labels: ${line}`)
  return { name, value, labels: Object.fromEntries(pairs.map(([, label = '', text = '']) => [label, text])) }
}
