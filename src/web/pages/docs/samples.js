/** A delivery that can be recomputed; a test does. */
export const SECRET = '6f0b8f0a3d5c4e219a7b6c5d4e3f2a1b0c9d8e7f6a5b4c3d2e1f0a9b8c7d6e5f'
export const BODY =
  '{"event":"comment:created","data":{"id":"com_1"},"timestamp":1777885331000,"traceId":"6c42567ab0f8157384bcb87bd270b3cb","triggeredBy":null}'
export const SIGNATURE = 'sha256=238ec1e9ff5c683eddf7f46183fd4032b7f131923e63c77b85a5ced67e604b0e'
export const EVENT_ID = '0198f6a4-51c2-7b3e-9d70-2f4c8a1b6e35'
