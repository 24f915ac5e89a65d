import { expect } from 'chai'
import type { Command } from '../../../src/cli/command-line/command.ts'
import { COMMANDS } from '../../../src/cli/command-line/commands.ts'
import { findCommand } from '../../../src/cli/command-line/read-arguments.ts'
import { argumentsOf } from '../../helpers/cli/run-cli.ts'

describe('the commands of posthorn', () => {
  for (const command of COMMANDS.flatMap((entry): Command[] =>
    'commands' in entry ? [...entry.commands] : [entry],
  ))
    it(`show options and examples of ${command.name} with --help, and accept the examples`, () => {
      const help = helpOf(`${command.name} --help`)
      expect(help).to.match(new RegExp(`^Usage: posthorn ${command.name}`))
      for (const { name } of command.options ?? []) expect(help).to.match(new RegExp(`^  --${name} `, 'm'))
      for (const example of command.examples) expect(`${help}\n`).to.include(`\n  posthorn ${example}\n`)
      expect(command.examples).to.not.be.empty
      for (const example of command.examples) {
        const [line = ''] = example.split(' >')
        const { command: name, problems } = argumentsOf(line.split(' '))
        expect([name, problems], example).to.deep.equal([command.name, []])
      }
    })

  for (const line of ['--help', '-h', 'help', '--help --json'])
    it(`list themselves as "posthorn ${line}"`, () => {
      expect(helpOf(line)).to.match(/^Usage: posthorn COMMAND /)
    })

  for (const line of ['seed --help', 'help seed', '--help seed', 'seed one two -h', 'seed --colour --help'])
    it(`show the help of seed as "posthorn ${line}"`, () => {
      expect(helpOf(line)).to.match(/^Usage: posthorn seed FILE\n/)
    })

  for (const line of ['api-key --help', 'help api-key', 'api-key --organisation --help'])
    it(`show the help of all of api-key as "posthorn ${line}"`, () => {
      expect(helpOf(line)).to.match(/^Usage: posthorn api-key COMMAND /)
    })

  for (const line of ['api-key revoke --organisation --help', 'help api-key revoke'])
    it(`show the help of api-key revoke as "posthorn ${line}"`, () => {
      expect(helpOf(line)).to.match(/^Usage: posthorn api-key revoke --organisation ORG \[--id ID\]/)
    })
})

function helpOf(line: string): string {
  const wanted = findCommand(COMMANDS, line.split(' '))
  if (wanted.kind !== 'help') throw new Error(`${line} asks for no help`)
  return wanted.text
}
