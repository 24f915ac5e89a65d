import { randomUUID } from 'node:crypto'
import { newId } from '../../ids.ts'
import type { NewEvent } from '../protocol/commit-events.ts'

/** The fields of an envelope (spec 2.2); `dataText` is the JSON text of `data` as the producer wrote it. */
export type Envelope = {
  event: string
  dataText: string
  /** Unix ms. A fraction, as that of the clock, is rounded. */
  timestamp: number
  traceId: string
  spanId: string | null
  /** Null for system actions. */
  triggeredBy: { id: string; name: string } | null
}

/** Returns the exact bytes that are stored, signed and sent on every attempt: one line of JSON. */
export function serialiseEnvelope(envelope: Envelope): Buffer {
  const { event, dataText, timestamp, traceId, spanId, triggeredBy } = envelope
  const members = [
    `"event":${JSON.stringify(event)}`,
    `"data":${dataText}`,
    `"timestamp":${timestamp}`,
    `"traceId":${JSON.stringify(traceId)}`,
    ...(spanId === null ? [] : [`"spanId":${JSON.stringify(spanId)}`]),
    `"triggeredBy":${triggeredBy === null ? 'null' : JSON.stringify({ id: triggeredBy.id, name: triggeredBy.name })}`,
  ]
  return Buffer.from(`{${members.join(',')}}`)
}

/**
 * Returns a random W3C trace id: 32 hexadecimal characters. They are those of a UUID, for which Node.js draws random
 * bytes by the kilobyte instead of for each event.
 */
export function generateTraceId(): string {
  return randomUUID().replaceAll('-', '')
}

/** Returns a new event with this envelope; `webhookId` as in {@link NewEvent}. */
export function newEvent(
  organisationId: string,
  envelope: Envelope,
  webhookId: string | null = null,
): NewEvent {
  const { event: key, traceId } = envelope
  const timestamp = Math.round(envelope.timestamp)
  const body = serialiseEnvelope({ ...envelope, timestamp })
  return { id: newId(), organisationId, key, body, emittedAt: new Date(timestamp), traceId, webhookId }
}

/** Returns a new test event, by which a user checks the endpoint of one webhook. */
export function newTestEvent(
  organisationId: string,
  webhookId: string,
  {
    event,
    data,
    timestamp,
    triggeredBy,
  }: Omit<Envelope, 'dataText' | 'traceId' | 'spanId'> & { data: object },
): NewEvent {
  const dataText = JSON.stringify(data)
  const traceId = generateTraceId()
  return newEvent(
    organisationId,
    { event, dataText, timestamp, traceId, spanId: null, triggeredBy },
    webhookId,
  )
}
