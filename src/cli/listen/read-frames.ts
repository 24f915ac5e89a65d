import { createParser } from 'eventsource-parser'
import { describeError } from '../../process/describe-error.ts'
import { UnavailableError } from './api-request.ts'
import { visibleText } from '../../process/visible-text.ts'

/** One block of the stream. A comment has nothing. */
type Frame = { id: string | null; event: string | null; data: string | null; retryMs: number | null }

/** No envelope is nearly as large. */
const MAX_FRAME_LENGTH = 4 * 1024 * 1024

/** Reads the frames of an event stream. Throws UnavailableError when the connection breaks. */
export async function* readFrames(body: AsyncIterable<Uint8Array>): AsyncGenerator<Frame> {
  const frame: Frame = { id: null, event: null, data: null, retryMs: null }
  const parser = createParser({
    onEvent: ({ id = null, event = null, data }) => void Object.assign(frame, { id, event, data }),
    onRetry: (retryMs) => void Object.assign(frame, { retryMs }),
  })
  const decoder = new TextDecoder()
  let text = ''
  try {
    for await (const chunk of body) {
      text += decoder.decode(chunk, { stream: true })
      const blocks = text.split('\n\n')
      text = blocks.pop() ?? ''
      if (text.length > MAX_FRAME_LENGTH) throw new Error('an event is larger than events of Posthorn are')
      for (const block of blocks) {
        Object.assign(frame, { id: null, event: null, data: null, retryMs: null })
        parser.feed(`${block}\n\n`)
        yield { ...frame }
      }
    }
  } catch (error) {
    const cause = error instanceof Error ? (error.cause ?? error) : error
    throw new UnavailableError(`The stream broke: ${visibleText(describeError(cause))}.`)
  }
}
