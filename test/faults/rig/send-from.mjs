// Loaded into a process under test with NODE_OPTIONS=--import: its connections to the ports of POSTHORN_TEST_RECEIVERS
// come from the address POSTHORN_TEST_ADDRESS, by which a receiver on this machine knows the sender.
import net from 'node:net'

const address = process.env.POSTHORN_TEST_ADDRESS
const ports = process.env.POSTHORN_TEST_RECEIVERS.split(',').map(Number)
const { connect } = net.Socket.prototype
net.Socket.prototype.connect = function (...args) {
  const [options] = Array.isArray(args[0]) ? args[0] : args
  if (ports.includes(Number(options?.port))) options.localAddress = address
  return connect.apply(this, args)
}
